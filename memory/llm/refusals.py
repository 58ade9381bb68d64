"""Telling an answer from what stands in its place: that the model will not, a question what is
meant, an error of whoever served it, or a word that says nothing.

Only how a text begins tells. A summary may report a refusal or a question, in the third person and
somewhere inside; a model that declines or asks back says so first, and in the first or second.
"""

from __future__ import annotations

import re

from memory.text import sentences

LONGEST_REFUSAL = 1_000
"""Characters above which a text that begins with an apology is taken for an answer after all."""

LONGEST_QUESTION = 600
"""Characters above which a text that begins by asking something is taken for an answer."""

_DECLINES = re.compile(
    r"""
    (?: (?:(?:i['’]?m|i\ am)\ )? (?:(?:very|so|really|truly|terribly)\ )? (?:sorry|afraid)\b.{0,60}?
      | (?:i\ |my\ |we\ )? apolog(?:ise|ize|ies|y)\b.{0,60}?
      | unfortunately\b,?\s* | regrettably\b,?\s* | thank\ you\b.{0,60}? )?
    \b(?: (?:i|we)(?:['’]?m|\ am|['’]?re|\ are)\ (?:not\ able|unable|not\ comfortable|not\ allowed
            |not\ permitted|prohibited|sorry)
      | (?:i|we)\ (?:can(?:['’]?t|\ ?not)|won['’]?t|will\ not|must\ (?:respectfully\ )?decline
            |(?:have\ to|need\ to|respectfully)\ decline|decline
            |do(?:n['’]?t|\ not)\ feel\ comfortable|prefer\ not)\b
      | as\ an?\ (?:ai|artificial\ intelligence|(?:large\ )?language\ model)\b
      | (?:my|our)\ (?:guidelines|policies|programming)\b )
  | (?:i['’]?m|i\ am)\ (?:very\ |so\ |really\ )?sorry\b[^a-z]*$
  | (?:sorry|my\ apologies)\b[^a-z]*$
  | (?:sorry|apologies),?\ (?:but\ )?(?:no|that['’]?s\ not|(?:this|your)\ request|this\ content)\b
  | (?:this|your)\ request\ (?:can(?:not|['’]t)|violates|has\ been\ (?:declined|refused|blocked))
  | (?:非常|很|真的|实在|十分)?(?:抱歉|对不起|遺憾|遗憾|不好意思)
      .{0,40}?(?:无法|無法|不能|没法|沒法|不便|不可以|没有办法|拒绝|不方便)
  | (?:我|本人|作为.{0,12}(?:AI|人工智能|语言模型|助手).{0,8})(?:无法|無法|不能|没法|不可以|拒绝)
      (?:协助|協助|帮|幫|提供|回答|处理|處理|完成|满足|执行|執行|讨论|继续|总结|生成|为|对|就|给|答)
  | 作为(?:一个|一名|一款)?(?:AI|人工智能|大?语言模型)
  | (?:非常|很|真的|实在|十分)?(?:抱歉|对不起|不好意思)[^\w]*$
  | (?:lo\ siento|lo\ lamento|disculp[ea]).{0,60}?\bno\ (?:puedo|podemos|me\ es\ posible)\b
  | no\ puedo\ (?:ayudar|responder|proporcionar|cumplir|hacer|asistir)
  | (?:je\ suis\ )?(?:désolée?|navrée?).{0,60}?\b(?:je\ ne\ peux|je\ ne\ suis\ pas|impossible)\b
  | je\ ne\ (?:peux|suis)\ pas\ (?:vous\ |t['’])?(?:aider|répondre|fournir|en\ mesure|autorisée?)
  | (?:es\ )?tut\ mir\ (?:sehr\ )?leid.{0,60}?\b(?:nicht|kein\w*)\b
  | (?:entschuldigung|leider|entschuldige).{0,60}?\bkann\ ich\b.{0,60}?\b(?:nicht|kein\w*)\b
  | (?:dabei|damit|das|ihnen|dir)?\ ?kann\ ich\b.{0,60}?\bnicht\ (?:helfen|beantworten|erfüllen)
  | ich\ kann\b.{0,60}?\bnicht\ (?:helfen|beantworten|erfüllen|weiterhelfen|unterstützen)
  | (?:desculp|lamento|sinto\ muito).{0,60}?\bnão\ (?:posso|consigo)\b
  | (?:mi\ dispiace|spiacente|scus[ai]).{0,60}?\bnon\ (?:posso|sono\ in\ grado)\b
  | (?:извини|прости|к\ сожалению|сожалею).{0,60}?\b(?:не\ (?:могу|можем|в\ состоянии))
  | я\ не\ (?:могу|в\ состоянии)\ (?:помочь|ответить|предоставить|выполнить)
  | (?:申し訳|すみません|すいません|恐れ入り|ごめん|残念).{0,60}?
      (?:できません|いたしかねます|出来ません|致しかねます|お答えできない|できかねます)
  | (?:죄송|미안|유감).{0,60}?(?:수\ ?없|못\ ?합니다|어렵습니다|않습니다)
  | (?:عذر|آسف|أعتذر|نأسف|للأسف).{0,60}?(?:لا\ (?:أستطيع|يمكنني|يمكن|نستطيع)|لن\ )
  | (?:लिए\ )?(?:क्षमा|माफ़?).{0,60}?(?:नहीं|असमर्थ)
    """,
    re.IGNORECASE | re.VERBOSE,
)

_PLEASANTRY = re.compile(
    r"""
    (?: sure(?:ly|\ thing)? | of\ course | certainly | absolutely | ok(?:ay)? | yes | hello | hi
      | great | thanks?(?:\ you)?\b[^.!?,]{0,40} | understood | got\ it | no\ problem
      | i['’]?(?:d|ll|\ would|\ will|['’]?m|\ am)\ (?:be\ )?(?:happy|glad|ready)\b[^.!?,]{0,80}
      | 好的 | 当然(?:可以)? | 没问题 | 您好 | 你好 | 可以 )
    [\s.,!:;。，！～~-]+
    """,
    re.IGNORECASE | re.VERBOSE,
)

_ASKS = re.compile(
    r"""
    (?:but\ |and\ |however,?\ )?
    (?: (?:could|can|would|will|do|did|are|have|may|might|shall|should)\ (?:you|i|we)\b
      | (?:what|which|how|where|when|who|whose|why)\b.{0,60}?\b(?:you|i|we)\b.*\?
      | (?:please|kindly)\ (?:provide|share|paste|send|give|tell|let\ me|clarify|specify|supply
            |upload|include|confirm|enter|type)
      | (?:it\ (?:looks|seems|appears)|looks|seems)\ (?:like\ |that\ |as\ if\ )?
            (?:you|there|the\ (?:text|message|conversation|content|input)|your|no)\b
      | you\ (?:have\ not|haven['’]?t|did\ not|didn['’]?t|forgot)\b
      | i\ (?:do\ not|don['’]?t)\ (?:see|have)\ (?:any|a|the|enough)\b
      | i\ (?:need|require|would\ need|['’]?d\ need|will\ need)\b.{0,40}?\b(?:more|the|you|clarif)
      | there\ (?:is|are|does\ not|doesn['’]?t)\ .{0,20}?\b(?:no|any)\ (?:text|conversation|message
            |content|input|data)\b.{0,80}?\b(?:provided|given|here|to\ (?:summar|extract|read))
      | let\ me\ know\b | tell\ me\b
      | 请(?:问|您|你)?(?:提供|发送|發送|告诉|告訴|粘贴|分享|给出|输入|上传|说明|明确|把)
      | 请问 | (?:您|你)(?:想|要|希望|需要|能|可以|是否|还没|没有).*[？?吗]
      | (?:能否|可否|是否可以)(?:请)?(?:您|你)? | 我需要(?:更多|您|你)
      | (?:¿|podrías?|puedes?|puede\ usted|por\ favor,?\ (?:proporci|comparte|envía))
      | (?:pourriez|pouvez|peux)[-\ ](?:vous|tu) | veuillez\b
      | (?:können|könnten|kannst|könntest)\ (?:sie|du)\ | bitte\ (?:geben|teilen|senden|schicken)
      | (?:не\ )?могли\ бы\ вы | пожалуйста,?\ (?:предоставьте|пришлите|укажите|уточните) )
    """,
    re.IGNORECASE | re.VERBOSE,
)

_ERROR = re.compile(
    r"""
    (?: \{\s*["'](?:error|errors|exception|detail|fault)["']\s*:
      | <(?:!doctype|html|\?xml)\b
      | Traceback\ \(most\ recent
      | (?:fatal\ |api\ |server\ )?(?:error|exception)\b\s*(?:code\s*)?\d*\s*(?:[:(]|occurred\b)
      | (?:[\w.]+\.)?(?-i:[A-Z])\w*(?:Error|Exception|Timeout)\b\s*[:(]
      | (?:http\S*\ )?(?:error\ )?[45]\d\d[\s:]+(?:too\ many\ requests|internal\ server
            |bad\ (?:gateway|request)|service\ unavailable|gateway\ time|unauthori[sz]ed|forbidden
            |not\ found)\b
      | (?: too\ many\ requests | internal\ server\ error | bad\ gateway | gateway\ time-?\ ?out
          | service\ (?:temporarily\ )?unavailable | upstream\ (?:connect|request)\ error
          | rate[\ _-]limit(?:ed|\ (?:reached|exceeded)) | (?:insufficient_)?quota\ exceeded
          | (?:connection|request|read)\ (?:error|refused|reset|timed\ out)
          | (?:maximum\ )?context[\ _](?:length|window)[\ _]exceeded | insufficient_quota
          | overloaded_error )\b(?!\ (?:in|for|of|at|on|to|was|were)\b)
      | (?:错误|错誤|錯誤|请求失败|請求失敗|服务器错误|请求超时|服务不可用)\s*[:：。!！]
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)

_NOTHING = re.compile(
    r"""
      n/?a | nil | none | null | nan | undefined | nothing | empty | blank | true | false | to\ ?do
    | ok(?:ay)? | yes | no | sure | done | noted | understood | got\ it
    | not\ (?:available|applicable)
    | (?:the\ |no\ )?summary(?:\ (?:available|needed))? | summari[sz]ed
    | nothing\ to\ summari[sz]e
    | 无 | 無 | 空 | 没有 | 沒有 | 暂无 | [无無](?:内容|內容) | 没有内容 | 好的? | 明白 | 收到
    | 是 | 否 | 摘要 | 总结
    """,
    re.IGNORECASE | re.VERBOSE,
)

_QUESTION_MARKS = "?？؟;՞፧⁇⁉"
_REPORTS = re.compile(r"[:：\"“”«»「」]|\basked\b|\bwants? to know\b|问|詢", re.IGNORECASE)
_LEADING = re.compile(r"^[\s\"'“”«»「」*_#>\-–—.…!¡]+")


def declines(text: str) -> bool:
    """Whether it says that the model will not or cannot, and not much else."""
    said = _LEADING.sub("", _one_line(text))
    return len(said) <= LONGEST_REFUSAL and _DECLINES.match(said) is not None


def asks_back(text: str) -> bool:
    """Whether it asks for something, or what is meant, instead of answering."""
    said = _LEADING.sub("", _one_line(text))
    if not said or len(said) > LONGEST_QUESTION:
        return False
    return _ASKS.match(_after_pleasantries(said)) is not None or _is_all_question(said)


def tells_an_error(text: str) -> bool:
    """Whether it is what a server or a program says when something went wrong."""
    said = text[: 4 * LONGEST_REFUSAL].lstrip(" \t\r\n\"'`*#>[")
    return len(text) <= LONGEST_REFUSAL and _ERROR.match(said) is not None


def says_nothing(text: str) -> bool:
    """Whether it is punctuation, or one word such as "none" or "OK"."""
    said = re.sub(r"^[\W_]+|[\W_]+$", "", text[: 4 * LONGEST_REFUSAL])
    return not said or _NOTHING.fullmatch(said) is not None


def _is_all_question(said: str) -> bool:
    """Nothing but questions, and nobody of whom it tells that they asked them."""
    parts = [part.strip() for part in sentences(said) if part.strip()]
    return (
        bool(parts) and all(p[-1] in _QUESTION_MARKS for p in parts) and not _REPORTS.search(said)
    )


def _after_pleasantries(said: str) -> str:
    while (match := _PLEASANTRY.match(said)) and match.end() < len(said):
        said = said[match.end() :]
    return said


def _one_line(text: str) -> str:
    return " ".join(text[: 4 * LONGEST_REFUSAL].split())
