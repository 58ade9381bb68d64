"""How much of what was said is found again: on public sets, beside plain baselines and peers."""
