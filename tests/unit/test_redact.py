"""Masking secrets: what is one, what is none, next to any script, in text and in JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.errors import InvalidInput, RedactionFailed
from memory.models import Message, Role, ToolCall
from memory.redact import Pattern, Redactor, mask, only_masks

redact = Redactor()

HEX40, HEX64 = "9c1185a5c5e9fc54612808977ee8f548b2258d31", "7f83b1657ff1fc53b92dc18148a1d65d" * 2
JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
    "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
)
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
    "MIIEpAIBAAKCAQEA04up8hoqzS1+APIB0RhjXyObwHQnOzhAk5Bd7mhkSbPkyhP1\n"
    "iWs3HtiDFBHxUvBp8iYcQPWTLd2Zy1yaCw==\n-----END RSA PRIVATE KEY-----"
)

# What is said, what must be gone, and the kind of secret that is named in its place.
SECRETS = [
    # the case's
    ("password is hunter2-XyZ, api key: sk-test-AAAABBBBCCCCDDDD1111", "hunter2-XyZ", "password"),
    ("password is hunter2-XyZ, api key: sk-test-AAAABBBBCCCCDDDD1111", "AAAABBBBC", "api key"),
    (f"AWS_SECRET_ACCESS_KEY={AWS_SECRET}", AWS_SECRET, "secret"),
    (f"here:\n{PEM}\nthanks", "iWs3HtiDFBHxUvBp8iYcQPWTLd2Zy1yaCw", "private key"),
    (f"Authorization: Bearer {JWT}", "dozjgNryP4J3jVmNHl0w5N", "token"),
    ("Authorization: Bearer eyJhbGci", "eyJhbGci", "token"),
    # tokens by their shape
    ("the key AKIAIOSFODNN7EXAMPLE works", "AKIAIOSFODNN7EXAMPLE", "aws access key"),
    (f"AKIAIOSFODNN7EXAMPLE, {AWS_SECRET}", AWS_SECRET, "aws secret key"),
    ("ghp_" + "aB3dE5fG7h" * 4, "aB3dE5fG7h", "github token"),
    ("github_pat_11ABCDEFG0" + "aB3dE5fG7h" * 6, "aB3dE5fG7h", "github token"),
    ("glpat-Xy12Zw34Ab56Cd78Ef90", "Xy12Zw34", "gitlab token"),
    ("xoxb-2444333222111-2444333222112-aBcDeFgHiJkLmNoPqRsTuVwX", "aBcDeFgH", "slack token"),
    ("sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "4eC39HqL", "api key"),
    ("AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe", "DaGmWKa4", "api key"),
    ("sk-ant-api03-R2D2abcdefghijklmnop-QRSTUVWXYZ0123456789AA", "R2D2abc", "api key"),
    ("sk-proj-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1", "Zx9Yw8Vu", "api key"),
    ("hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345", "AbCdEfGh", "api key"),
    ("npm_1234567890abcdefghij1234567890abcdef", "1234567890", "api key"),
    (f"see {JWT} for it", "dozjgNryP4J3jVmNHl0w5N", "token"),
    ("bot 110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw-x", "AAHdqTcv", "token"),
    ("curl -u admin:s3cr3tPw http://intranet", "s3cr3tPw", "password"),
    ("Basic YWRtaW46aHVudGVyMg==", "YWRtaW46aHVudGVyMg", "password"),
    ("root:$6$Xy12Zw34$abcdefghijklmnopqrstuvwxyz0123456789ABCDEF:19000", "abcdefgh", "password h"),
    # passwords in URLs
    ("postgresql://app:p4ss-w0rd@db.example.org:5432/prod", "p4ss-w0rd", "password"),
    ("redis://:Zx9Yw8@cache:6379/0", "Zx9Yw8", "password"),
    ("mongodb+srv://lin:pa@ss9@cluster0.example.net", "pa@ss9", "password"),
    (f"https://{HEX40}@github.com/ada/repo.git", HEX40, "token"),
    # cards
    ("card 4111 1111 1111 1111 exp 12/29", "1111 1111", "card number"),
    ("5500-0055-5555-5559", "5500-0055", "card number"),
    ("my amex is 378282246310005.", "378282246310005", "card number"),
    ("3782 822463 10005", "822463", "card number"),
    ("卡号６２１７０００１０００００００５吧", "６２１７", "card number"),
    ("信用卡4111111111111111，有效期", "4111111111111111", "card number"),
    ("card number 4222222222222", "4222222222222", "card number"),
    # given to commands, and in links that open a file to whoever has them
    ("mysql -u root -pS3cretPw app", "S3cretPw", "password"),
    ("sshpass -p 'Gr33n!day' ssh root@10.0.0.1", "Gr33n!day", "password"),
    ("docker login registry.example.org -u ada -p Gr33n-day", "Gr33n-day", "password"),
    ("redis-cli -h cache -a f00bared ping", "f00bared", "password"),
    ("htpasswd -bc .htpasswd ada Gr33n1day", "Gr33n1day", "password"),
    ("echo 'ubuntu:newpass99' | sudo chpasswd", "newpass99", "password"),
    (f"https://x.blob.example.net/f?sv=2020-08-04&sig={HEX40}%3D&se=2025", HEX40, "signature"),
    (f"https://b.s3.example.com/f?X-Amz-Signature={HEX64}&X-Amz-Date=1", HEX64, "signature"),
    (
        "https://api.telegram.org/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw-x/getMe",
        "AAHdqTcv",
        "token",
    ),
    (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBGPabcdefghijk\n"
        "-----END PGP PRIVATE KEY BLOCK-----",
        "lQOYBGPabcdefghijk",
        "private key",
    ),
    (f"PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 1\n{HEX64}\n", HEX64, "private key"),
    # named in programs and files
    ("password: !!str s3cr3t_pw\nuser: app", "s3cr3t_pw", "password"),
    ("password: |\n  hunter2-XyZ\n", "hunter2-XyZ", "password"),
    ("SMTP_PASS=abcd efgh ijkl mnop", "efgh ijkl", "password"),
    ("DB_PASSWORD=swordfish", "swordfish", "password"),
    ("export DATABASE_PASSWORD='correct horse'", "correct horse", "password"),
    ('{"password": "hunter2", "user": "ada"}', "hunter2", "password"),
    ('{\\"password\\": \\"hunter2\\", \\"user\\": \\"ada\\"}', "hunter2", "password"),
    ("password: swordfish\nuser: ada", "swordfish", "password"),
    ("<password>swordfish</password>", "swordfish", "password"),
    ("dbPassword: swordfish9", "swordfish9", "password"),
    ("Server=db;User Id=sa;Password=Sw0rdfish;Encrypt=yes", "Sw0rdfish", "password"),
    ("https://example.org/login?user=ada&password=swordfish&next=1", "swordfish", "password"),
    ("mysql --password swordfish9 --user ada", "swordfish9", "password"),
    ("| password | swordfish9 |", "swordfish9", "password"),
    ("X-Api-Key: 3f7a9b2c4d5e6f70", "3f7a9b2c4d5e6f70", "api key"),
    ("OPENAI_API_KEY = 'abcd1234efgh5678'", "abcd1234efgh5678", "api key"),
    ("client_secret=Qm9vQmFyQmF6", "Qm9vQmFyQmF6", "secret"),
    ("clientSecret: 'very-secret-thing-9'", "very-secret-thing-9", "secret"),
    ("HEROKU_API_KEY=550e8400-e29b-41d4-a716-446655440000", "550e8400", "api key"),
    (f"token: {HEX40}", HEX40, "token"),
    (f"secret = {HEX64}", HEX64, "secret"),
    ("Cookie: sessionid=38afes7a8d9c; csrftoken=aa11bb22", "38afes7a8d9c", "cookie"),
    ("private key: 0x" + HEX64, HEX64, "private key"),
    ('out: "A=1\\nPASSWORD=hunter2\\nB=2"', "hunter2", "password"),
    ("-e POSTGRES_PASSWORD=Tr0ub4dor&3 -d postgres", "Tr0ub4dor&3", "password"),
    # said, in English
    ("The root password has been set to `k9$fP2-x`", "k9$fP2-x", "password"),
    ("Use this password instead: Blue$Sky7", "Blue$Sky7", "password"),
    ("Your temporary password is:\n\nXy7-Qr9-Lm3\n\nThank you", "Xy7-Qr9-Lm3", "password"),
    ("the wifi key is 8f3k2j9d0s", "8f3k2j9d0s", "api key"),
    ("my visa, security code 914", "914", "card code"),
    ("2FA backup code: 8f2k-93jd-0xk2", "8f2k-93jd-0xk2", "recovery code"),
    ("My password is swordfish.", "swordfish", "password"),
    ("my pw: hunter2!", "hunter2", "password"),
    ("The password for the guest wifi is Sunny-Day-42 by the way", "Sunny-Day-42", "password"),
    ("password hunter2", "hunter2", "password"),
    ("I changed my password to Tr0ub4dor&3 yesterday", "Tr0ub4dor&3", "password"),
    ("hunter2-XyZ is my password", "hunter2-XyZ", "password"),
    ('the password is "open sesame"', "open sesame", "password"),
    ("**Password:** Sw0rdfish", "Sw0rdfish", "password"),
    ("My api key is 3f7a9b2c4d5e6f70", "3f7a9b2c4d5e6f70", "api key"),
    ("my PIN is 4821", "4821", "pin"),
    ("CVV: 737", "737", "card code"),
    (
        "seed phrase: witch collapse practice feed shame open despair creek road again ice least",
        "collapse practice",
        "passphrase",
    ),
    ("the passphrase is correct horse battery staple", "horse battery", "passphrase"),
    (f"Here is the token you asked for: {HEX40}", HEX40, "token"),
    ("refreshToken: 'v1.MjAyNDA1MDE0Z3hk'", "MjAyNDA1MDE0", "token"),
    # … and in other languages, with and without spaces
    ("登录密码是：qwerty，别告诉别人", "qwerty", "password"),
    ("用户名admin密码admin888", "admin888", "password"),
    ("密码（WiFi）：hunter2，好", "hunter2", "password"),
    ("我的password是hunter2", "hunter2", "password"),
    ("信用卡的 CVV 是 737", "737", "card code"),
    ("密碼係 Hk2020!!", "Hk2020", "password"),
    ("恢复码：8f2k-93jd-0xk2", "8f2k-93jd", "recovery code"),
    ("セキュリティコード：737", "737", "card code"),
    ("ключ API: 3f7a9b2c4d5e6f70a1", "3f7a9b2c", "api key"),
    ("密码都是 admin@2023", "admin@2023", "password"),
    ("пароль такой: kotik99", "kotik99", "password"),
    ("вот токен 1a2b3c4d5e6f7a8b9c0d", "1a2b3c4d", "token"),
    ("mon mdp: Fromage55", "Fromage55", "password"),
    ("Пин-код: 4821", "4821", "pin"),
    ("مفتاح API: 3f7a9b2c4d5e6f70a1", "3f7a9b2c", "api key"),
    ("كلمة المرور الخاصة بي هي Qahwa2024", "Qahwa2024", "password"),
    ("كلمة مرور الواي فاي: Qahwa2024", "Qahwa2024", "password"),
    ("الباسورد: Qahwa2024", "Qahwa2024", "password"),
    ("WLAN-Schlüssel: 82736455192837465512", "8273645519", "api key"),
    ("mật khẩu wifi: hoasen99", "hoasen99", "password"),
    ("我的密码是hunter2，请记住", "hunter2", "password"),
    ("密码：hunter2", "hunter2", "password"),
    ("wifi密码改成了Sunny42请记住", "Sunny42", "password"),
    ("ｐａｓｓｗｏｒｄ：ｈｕｎｔｅｒ２", "ｈｕｎｔｅｒ２", "password"),
    ("hunter2XyZ是我的密码", "hunter2XyZ", "password"),
    ("登录口令为 S3cret!x 哦", "S3cret!x", "password"),
    ("我的API密钥是3f7a9b2c4d5e6f70。", "3f7a9b2c4d5e6f70", "api key"),
    ("密钥sk-test-AAAABBBBCCCCDDDD1111在这里", "AAAABBBBCCCC", "api key"),
    ("パスワードはhunter2です", "hunter2", "password"),
    ("비밀번호는 hunter2예요", "hunter2", "password"),
    ("Мой пароль: солнышко99", "солнышко99", "password"),
    ("пароль — hunter2", "hunter2", "password"),
    ("La contraseña es tigre99", "tigre99", "password"),
    ("Das Passwort lautet Sommer2024!", "Sommer2024", "password"),
    ("le mot de passe est soleil77", "soleil77", "password"),
    ("a senha é gato123", "gato123", "password"),
    ("şifrem: kedi2023", "kedi2023", "password"),
    ("hasło to kotek77", "kotek77", "password"),
    ("كلمة المرور: hunter2", "hunter2", "password"),
    ("كلمة السر هي hunter2", "hunter2", "password"),
    ("הסיסמה שלי: \u200fhunter2", "hunter2", "password"),
    ("पासवर्ड hunter2 है", "hunter2", "password"),
    ("รหัสผ่านคือhunter2", "hunter2", "password"),
    ("mật khẩu là hunter2", "hunter2", "password"),
]

NO_SECRETS = [
    "my PIN is blue",
    "The order is 7300418826, thanks.",
    "order 7300418826",
    "550e8400-e29b-41d4-a716-446655440000",
    f"commit {HEX40}",
    f"key: {HEX40[:12]}",
    "call me at +49 170 1234567 or 13800138000",
    "ISBN 978-3-16-148410-0 and 9783161484100",
    "on 2026-03-01 at 10:30, or 20260301103000",
    "EAN 4006381333931",
    "My password is too short.",
    "The password is wrong.",
    "The password is stored in the vault.",
    "password: required",
    "password: str",
    '{"password": {"type": "string"}}',
    '{"password": "Enter your password"}',
    "Password: please enter at least 8 characters",
    "password must be 8-16 characters",
    "The password is 8 characters long.",
    "I forgot my password again and reset it.",
    "password=os.environ['DB_PASSWORD']",
    "password = getpass.getpass()",
    "password=self.password",
    "PASSWORD=$DB_PASSWORD",
    "password: ${DB_PASSWORD}",
    "password: <your password>",
    "password: ********",
    "postgresql://user:password@host:5432/db",
    "postgresql://USER:<password>@host/db",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "Authorization: required",
    "authorization is needed for 2024 visits",
    "max_tokens: 4096, token_count=1234567890123456",
    "the tokenizer gives 4096 tokens: hello",
    "key: C minor; the key is under the mat",
    "primary key: user_profile_2024_final",
    "cache key = order_7300418826_items",
    '"key": "550e8400-e29b-41d4-a716-446655440000"',
    "monkey: banana12345678901234",
    "the secret is patience",
    "her secret: she baked 12 cakes",
    "The bearer of bad news, a basic understanding",
    "密码是什么？",
    "密码是6位数字",
    "请输入密码：",
    "我忘了密码，怎么办",
    "密码：请向管理员索取",
    "关键词：天气2024",
    "Который пароль? Пароль неверный.",
    "La contraseña es incorrecta.",
    "sk-learn-for-absolute-beginners-and-more",
    "a task-management-system-for-everybody",
    "I use 1Password as my password manager",
    "the password is hashed with SHA256",
    "password SHA256",
    "https://example.org/a:b@c",
    "ada@example.org, http://example.org:8080/x@y",
    "4111 1111 1111 1112",
    "the pin 1234 on the map",
    "spin is 4821",
    "pass: the ball; she will pass to number 10",
    "Keyboard: Logitech MX5000, passport: see below",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ==\n-----END PUBLIC KEY-----",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA",
    "Balang Mountain Pass (elevation 4,480 m): 2–8°C, cloudy",
    'the mnemonic: "First determine the nature, then define the scope, and finally judge the act"',
    "la clave es madrugar",
    "a million of `password=`, `密码是` and `passwd:` take a while",
    "la parola è bella",
    "curl it first; docker run -u 1000:1000 app",
    "docker login, then ssh -p 2222 host; mysql -u root -p app",
    "sig=none, signature = hmac(key, body)",
    "security code review on 2024-05-01",
    "password_hash: bcrypt, password length: 12",
    "密码学是研究加密的学科",
    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
    "1700000000000 1700000000000000",
]


@pytest.mark.parametrize(("said", "secret", "kind"), SECRETS)
def test_a_secret_is_masked_and_its_kind_is_named(said: str, secret: str, kind: str) -> None:
    assert secret in said
    masked = redact(said)
    assert secret not in masked
    assert f"[redacted: {kind}" in masked
    assert redact(masked) == masked


@pytest.mark.parametrize("said", NO_SECRETS)
def test_what_is_no_secret_stays_word_for_word(said: str) -> None:
    assert redact(said) == said


# --- what holds for every text -------------------------------------------------------------------

PIECES = st.sampled_from(
    [said for said, _, _ in SECRETS]
    + NO_SECRETS
    + [
        "password",
        " is ",
        ": ",
        "=",
        "密码",
        "是",
        "token",
        '"',
        "\\",
        "[redacted: ",
        "]",
        "\n",
        "\x00",
    ]
    + [
        "\ud800",
        "\u200f",
        "key",
        "Bearer ",
        "://",
        "@",
        "4111 ",
        "-----BEGIN PRIVATE KEY-----",
        "İ",
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=8).map("".join))
@example(
    "secret [redacted: password]: [redacted: token] key [redacted: api key]: abcdef0123456789ab"
)
def test_masking_again_changes_nothing(said: str) -> None:
    once = redact(said)
    assert redact(once) == once


@given(st.text(max_size=40), st.sampled_from(["AKIAIOSFODNN7EXAMPLE", JWT, AWS_SECRET]))
def test_what_stands_around_a_secret_does_not_hide_it(around: str, secret: str) -> None:
    said = f"{around}。password：{secret}。{around}"
    assert secret not in redact(said)


@pytest.mark.parametrize("letter", ["a", "1", "我", "-", " ", '"', "\\", "\ud800"])
def test_a_million_of_one_letter_are_looked_at_once(letter: str) -> None:
    assert redact(letter * 1_000_000) == letter * 1_000_000


PERIODS = [
    *("key=", "密码是", "4111 ", "5500-", "pwd（", "password,", "password**", "ｐａｓｓｗｏｒｄ"),
    *("a1b2c3 is my password ", "password: ", "password=x1 ", "pass:", "clave ", "取款密码是1234"),
    *("curl -u a:", "mysql -p", "://a:b@c ", "4111111111111111 ", "[redacted: password] "),
]


@pytest.mark.parametrize("period", PERIODS)
def test_a_million_characters_made_to_be_slow_hide_no_secret(period: str) -> None:
    """It takes a part of a second; what is asked of every name took minutes of some of these."""
    masked = redact(f"{period * (1_000_000 // len(period))}\nMy password is hunter2-XyZ.")
    assert "hunter2" not in masked
    assert redact(masked) == masked


def test_among_more_names_than_anybody_gives_secrets_every_secret_is_masked() -> None:
    names = "password: \n" * 6_000
    every = [(said, secret) for said, secret, _ in SECRETS if secret not in names]
    masked = redact("\n\n".join([names, *(said for said, _ in every)]))
    assert [said for said, secret in every if secret in masked] == []


def test_many_secrets_among_many_masks_are_masked() -> None:
    said = "[redacted: token] then ghp_1234567890abcdefghij and so on, and on. " * 20_000
    masked = redact(said)
    assert "ghp_" not in masked
    assert redact(masked) == masked


def test_a_long_secret_is_masked_to_its_end() -> None:
    token = "".join(f"{n:x}Z" for n in range(20_000))
    assert redact(f"token={token} and more") == "token=[redacted: token] and more"


def test_a_private_key_that_was_cut_off_is_masked_as_far_as_it_goes() -> None:
    head, _, _ = PEM.rpartition("\niWs3")
    masked = redact(f"{head}\nThat was all.")
    assert masked == "[redacted: private key]That was all."


def test_a_text_that_is_only_a_mask_is_known() -> None:
    assert only_masks("[redacted: password]")
    assert only_masks(' "[redacted: api key]," ')
    assert not only_masks("hunter2")
    assert not only_masks("a [redacted: password] for the wifi")
    assert not only_masks("...")


# --- messages ------------------------------------------------------------------------------------

KEY = "sk-test-AAAABBBBCCCCDDDD1111"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" * 20


def test_every_string_of_a_message_is_looked_at() -> None:
    message = Message(
        role=Role.ASSISTANT,
        content=(
            {"type": "text", "text": f"the key {KEY}"},
            {"type": "tool_use", "id": "t1", "name": "login", "input": {"password": "swordfish"}},
            {"type": "unheard-of", "deep": [{"er": f"AKIAIOSFODNN7EXAMPLE {KEY}"}]},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
            {"type": "image", "source": {"type": "base64", "data": PIXEL}},
        ),
        name=f"bot-{KEY}",
        tool_calls=(ToolCall(id="c1", name="login", arguments='{"user": "ada", "pin": 4821}'),),
        metadata={"header": {"Authorization": f"Bearer {JWT}"}, "n": 7, "api_key": "swordfish99"},
    )
    masked = redact.message(message)
    said = repr(masked)
    assert not [secret for secret in (KEY, "swordfish", "AKIA", "4821", JWT) if secret in said]
    assert masked.content is not None
    assert masked.content[3:] == message.content[3:]  # type: ignore[index]
    assert masked.name == "bot-_redacted_api_key_"
    assert masked.tool_calls[0].id == "c1"
    assert json.loads(masked.tool_calls[0].arguments) == {"user": "ada", "pin": mask("pin")}
    assert masked.metadata["n"] == 7
    assert redact.message(masked) == masked


HIDDEN: list[tuple[dict[str, Any], str]] = [
    ({"headers": {"Authorization": "Bearer abcd1234"}}, "abcd1234"),
    ({"headers": {"Cookie": "sid=38afes7a8d9c"}}, "38afes7a8d9c"),
    ({"headers": [["Authorization", "Bearer abcd1234"]]}, "abcd1234"),
    ({"argv": ["mysql", "--password", "Gr33nday", "--user", "ada"]}, "Gr33nday"),
    ({"env": [{"Key": "DB_PASSWORD", "Value": "gr33n"}]}, "gr33n"),
    ({"detail": "refused: password=hunter2x"}, "hunter2x"),
    ({"role": KEY}, KEY),
    ({"text": "data:;base64,AAAA password=hunter2"}, "hunter2"),
    ({"text": "data:text/plain;base64,AAAA AKIAIOSFODNN7EXAMPLE"}, "AKIAIOSF"),
    ({"blob": "sk-proj-" + "aB3dE5fG7h" * 30}, "aB3dE5fG7h"),
]


@pytest.mark.parametrize(("held", "secret"), HIDDEN)
def test_no_field_hides_a_secret(held: dict[str, Any], secret: str) -> None:
    assert secret not in json.dumps(redact.json(held))
    call = ToolCall(id="c", name="f", arguments=json.dumps(held))
    masked = redact.message(Message(role=Role.ASSISTANT, content=(held,), tool_calls=(call,)))
    assert secret not in masked.model_dump_json()
    assert redact.message(masked) == masked


@pytest.mark.parametrize(
    "value",
    [
        {"required": ["password", "email"], "type": "object", "detail": "high"},
        {"argv": ["--password", "--user"], "headers": {"Authorization": "Bearer <token>"}},
        {"authorization": "required", "cookie": "none", "cookies": {"n": 1}},
        {"url": f"data:image/png;base64,{PIXEL}", "data": PIXEL},
        {"name": "email", "value": "ada@example.org"},
    ],
)
def test_fields_without_secrets_stay(value: dict[str, Any]) -> None:
    assert redact.json(value) == value


def test_a_message_without_secrets_is_the_same_object() -> None:
    call = ToolCall(id="c1", name="book", arguments='{ "table":2,"at": 1.50 }')
    message = Message(role=Role.ASSISTANT, content="Booked.", tool_calls=(call,), metadata={"n": 1})
    assert redact.message(message) is message


@pytest.mark.parametrize(
    "arguments",
    [
        '{"password": "hunter2"}',
        '{"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}',
        '{"command": "PASSWORD=hunter2 \\"run\\" it"}',
        '{"body": "{\\"password\\": \\"hunter2\\"}"}',
        '["--password", "hunter2", "password: hunter2"]',
    ],
)
def test_arguments_that_were_json_stay_json(arguments: str) -> None:
    message = Message(
        role=Role.ASSISTANT, tool_calls=(ToolCall(id="c", name="f", arguments=arguments),)
    )
    masked = redact.message(message).tool_calls[0].arguments
    json.loads(masked)
    assert "hunter2" not in masked


def test_names_that_json_escapes_are_read() -> None:
    said = json.dumps({"out": "我的密码是hunter2，请记住", "口令": "tigre99", "n": 1})
    assert "\\u" in said
    assert json.loads(redact(said)) == {
        "out": "我的密码是[redacted: password]，请记住",
        "口令": "[redacted: password]",
        "n": 1,
    }


def test_arguments_that_are_no_json_are_masked_as_text() -> None:
    message = Message(
        role=Role.ASSISTANT,
        tool_calls=(ToolCall(id="c", name="f", arguments='{"password": "hunter2"'),),
    )
    assert "hunter2" not in redact.message(message).tool_calls[0].arguments


def test_what_is_nested_too_deep_is_refused() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(InvalidInput, match="too deep"):
        redact.json(deep)


# --- what callers add ----------------------------------------------------------------------------


def test_a_pattern_of_ones_own_is_masked_too() -> None:
    mine = redact.extended(Pattern("badge", r"badge (?P<secret>[0-9]{6})", needs=("badge",)))
    assert mine(f"badge 123456, key {KEY}") == "badge [redacted: badge], key [redacted: api key]"
    assert redact("badge 123456") == "badge 123456"


@pytest.mark.parametrize(("kind", "regex"), [("", "x"), ("a]b", "x"), ("ok", "(")])
def test_a_pattern_that_cannot_work_is_refused(kind: str, regex: str) -> None:
    with pytest.raises(InvalidInput):
        Pattern(kind, regex)


def test_a_function_of_ones_own_is_asked_after_the_usual_patterns() -> None:
    def shout(text: str) -> str:
        return text.replace("Ada", "[somebody]")

    both = Redactor.of(shout, builtin=True)
    assert both(f"Ada: {KEY}") == "[somebody]: [redacted: api key]"
    assert Redactor.of(shout, builtin=False)(f"Ada: {KEY}") == f"[somebody]: {KEY}"
    assert Redactor.of(None, builtin=False)(f"Ada: {KEY}") == f"Ada: {KEY}"
    assert Redactor.of(redact, builtin=False) is redact


@pytest.mark.parametrize("answer", [None, 7, b"x"])
def test_a_function_that_gives_no_text_is_an_error_without_the_text(answer: Any) -> None:
    def broken(text: str) -> str:
        if answer is None:
            raise ValueError(f"cannot read {text}")
        return answer  # type: ignore[no-any-return]

    with pytest.raises(RedactionFailed) as raised:
        Redactor.of(broken, builtin=True)("a secret plan")
    assert "plan" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
