"""The tokenizer of the default English model; see NOTICE."""
