"""Reads facts out of Chinese sentences in the first person.

A sentence is taken clause by clause (，。；！). A slot is read only where a clause begins with 我,
or where 我 was the subject of the clause before and is left out. What stands in a slot runs to the
end of the clause, without the particles that trail behind it, so that a slot with more in it than
a name or a thing is not filled. Sentences that ask, suppose, report or doubt are not read, and
lists are taken apart at 、和跟与.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

from memory.semantic import slots
from memory.semantic.names import SELF
from memory.semantic.slots import Found


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def read(text: str, now: datetime) -> Iterator[Found]:
    """The facts in `text`, which somebody said at `now`, in the order of the text."""
    own = slots.own_words(text)
    if "我" not in own:
        return
    for sentence in _SENTENCE.findall(own):
        if _OTHERS_WORDS.search(sentence):
            return
        if len(sentence) > slots.SENTENCE_LIMIT or _NOT_STATED.search(sentence):
            continue
        yield from _clauses(sentence, now)


_SENTENCE = re.compile(r"[^。！？!?\n；;…]+[。！？!?\n；;…]*")
_OTHERS_WORDS = re.compile(
    r"翻译|改写|润色|改成|扮演|假装|想象|小说|故事|歌词|剧本|台词|例句|造句|写一(?:篇|首|个|封|段)"
)
"""What follows is not what the user says about themselves."""
_NOT_STATED = re.compile(
    r"[？?]|吗|呢(?:$|[。！])|什么|哪|谁|怎么|怎样|几[个岁点月号只]|多少|为啥|为何|是不是|有没有|"
    r"能不能|"
    r"要不要|会不会|该不该|好不好|如果|要是|假如|假设|倘若|万一|也许|可能|或许|大概|说不定|希望|"
    r"但愿|"
    r"以为|听说|据说|传说|[他她它们人家妈爸哥姐弟妹友事]说|说我|问我|告诉我|梦见|梦到|差点|恨不得|"
    r"本来想|好像|似乎|应该|除非|开玩笑|骗你|\ufffc"
)
"""Asked, supposed, reported or doubted."""
_CLAUSE = re.compile(r"[，,：:。！!；;…~～\n（）()]+|(?<=[^\x00-\x7f]) +(?=[^\x00-\x7f])")


class _Clause(NamedTuple):
    """What is said of 我: without the words in front, and whole."""

    text: str
    whole: str
    now: datetime

    @property
    def since(self) -> datetime | None:
        return when(self.whole, self.now)


_Take = Callable[["_Clause", "re.Match[str]"], "list[Found] | None"]


def _clauses(sentence: str, now: datetime) -> Iterator[Found]:
    goes_on = False
    for piece in _CLAUSE.split(_CALLED_NEXT.sub(r"\1", sentence)):
        text = _OPENER.sub("", piece.strip())
        if not text:
            continue
        said = _SUBJECT.match(text)
        if said:
            rest = text[said.end() :]
        elif goes_on and not _OTHER_SUBJECT.match(text):
            rest = text
        else:
            rest = ""
        found = _read_clause(_Clause(_ADVERBS.sub("", rest), piece, now)) if rest else None
        if found is None:
            found = _relative(_Clause(text, piece, now))
        yield from found or ()
        goes_on = bool(said) if not goes_on else bool(said or found)


_OPENER = re.compile(
    r"^(?:你好|您好|大家好|嗨|哈喽|对了|其实|另外|还有|而且|不过|但是?|可是|所以|因为|然后|哦|嗯|"
    r"啊|"
    r"顺便说一下|顺便|说实话|老实说|请记住|记住|记一下|提醒一下|现在|目前|最近|今年|去年|上个月|"
    r"上周|"
    r"从今天起|从今天开始|从现在起|从此|更新一下|好消息是?|坏消息是?|"
    r"从?(?:19|20)\d\d年(?:起|开始)?|[一二两三四五六七八九十\d]+(?:年|个月|天|个?星期|"
    r"周)(?:以?前|之前))[ 、]*"
)
_SUBJECT = re.compile(
    r"我的?(?=生日|专业|名字)|我们(?=打算|计划|准备|养|住|家住|搬|现在住)|我家(?=养|有)|"
    r"我(?!们|的|家|妈|爸|妹|姐|哥|弟|老|女|儿|爷|奶|外|妻|丈|太|先)|我(?=家住)"
)
_OTHER_SUBJECT = re.compile(r"[你您他她它这那谁别]|我的|我家|大家|有人|人家")
_ADVERBS = re.compile(
    r"^(?:(?:现在|目前|一直|最近|已经|终于|今年|去年|前年|上个月|上个星期|上周|昨天|前天|这个月|"
    r"刚刚?|"
    r"从小|也|还|就|都|真的|确实|其实|平时|这两年|这几年|今天起|今后|以后|从此|早就|已|"
    r"从?\d{4}年起?|[一二两三四五六七八九十\d]+(?:年|个月|天|个?星期|周)(?:以?前|之前)))+"
)


def _read_clause(clause: _Clause) -> list[Found] | None:
    for pattern, take in _SLOTS:
        match = pattern.fullmatch(clause.text)
        if match is not None:
            found = take(clause, match)
            if found is not None:
                return found
    return None


# --- phrases -------------------------------------------------------------------------------------

_PARTICLES = re.compile(r"(?:[了啦呀啊哦喔呢吧哈哒的]|一下|为止|来着|哟|～|~|[ .．])+$")
_LIST = re.compile(r"[、和跟与]|以及|还有")
_PRONOUN = re.compile(r"[你您他她它]|这|那|自己|别人|大家|人家|咱|我")


def _bare(text: str) -> str:
    return _PARTICLES.sub("", text.strip()).strip()


def _thing(text: str, *, longest: int = 10) -> str | None:
    """A thing: a short phrase with nobody in it, in which no further clause begins."""
    thing = _bare(text)
    if not 1 <= len(thing) <= longest or _PRONOUN.search(thing) or _NOT_A_THING.search(thing):
        return None
    return thing


_NOT_A_THING = re.compile(
    r"^(?:的|得|了|过|着|上了|一|不|在|是|有|要|去|来|到|把|被|跟|对|让|很|更|最|就|也|都|但|"
    r"东西|事情|事|饭|早饭|午饭|晚饭|早餐|午餐|晚餐|这样|那样|时候)|"
    r"时候|因为|所以|但是|不过|而且|虽然|如果|的人|的是|的话|起来|下去|之后|以前|比较|一点|一些|"
    r"不了|"
    r"[了过]\S"
)


def _things(text: str) -> list[str] | None:
    """Things in a list; None when one of them is not a thing."""
    found = [_thing(part) for part in _LIST.split(_bare(text)) if part.strip()]
    kept = [thing for thing in found if thing is not None]
    return kept if kept and len(kept) == len(found) else None


_PLACE_TAIL = re.compile(
    r"(?:的.*|[这那]边|市区|一带|住|生活|居住|定居|上班|工作|读书|上学|很久|好几年|多年|"
    r"[一二两三四五六七八九十几\d]+(?:多)?(?:年|个月|天|周|个星期))+$"
)
_NO_PLACE = re.compile(
    r"^(?:一|这|那|哪|新|别|外面|外地|里面|隔壁|楼|公司|学校|单位|宿舍|酒店|宾馆|家|乡下|城里|"
    r"郊区|山|海边|"
    r"农村|国外|国内|老家|市中心|附近|对面|出租|租|朋友|父母|爸|妈|同学|男|女|老|她|他|你|我|"
    r"自己|人家|"
    r"一起|医院|另|某|不|同)|(?:家|家里|楼|楼上|楼下|隔壁|附近|旁边|对面|宿舍|酒店|房子|公寓|"
    r"小区|里|"
    r"上|下|那儿|这儿|这里|那里|公司|学校|部门|工位|座位)$"
)


def _place(text: str) -> str | None:
    """A place by its name."""
    place = _bare(_PLACE_TAIL.sub("", _bare(text)))
    if not 2 <= len(place) <= 14 or _NO_PLACE.search(place) or _PRONOUN.search(place):
        return None
    return place if not _NOT_A_THING.search(place) and _NAMELIKE.fullmatch(place) else None


_NAMELIKE = re.compile(r"[\w·&.' -]+")
_CITIES = _words(
    "北京 上海 天津 重庆 广州 深圳 成都 杭州 南京 武汉 西安 苏州 长沙 郑州 青岛 大连 "
    "宁波 厦门 福州 济南 合肥 昆明 沈阳 哈尔滨 长春 石家庄 太原 南昌 南宁 贵阳 海口 兰州 "
    "西宁 银川 拉萨 乌鲁木齐 呼和浩特 无锡 常州 佛山 东莞 珠海 中山 惠州 温州 嘉兴 绍兴 台州 "
    "金华 烟台 潍坊 徐州 南通 扬州 泉州 三亚 桂林 大理 丽江 香港 澳门 台北 高雄 新竹 "
    "东京 大阪 首尔 新加坡 曼谷 伦敦 巴黎 柏林 罗马 纽约 洛杉矶 旧金山 西雅图 波士顿 多伦多 "
    "温哥华 悉尼 墨尔本 莫斯科 中国 美国 英国 法国 德国 日本 韩国 加拿大 澳大利亚 新西兰 意大利 "
    "西班牙 浙江 江苏 广东 四川 湖北 湖南 山东 河北 河南 福建 安徽 江西 辽宁 吉林 黑龙江 陕西 山西 "
    "云南 贵州 广西 海南 甘肃 青海 宁夏 新疆 西藏 内蒙古 台湾"
)
"""Where one can work without its being an employer."""
_NO_EMPLOYER = re.compile(
    r"^(?:一|这|那|家|外|国|老家|网上|网络|互联网|金融|银行$|医院$|公司|学校$|工厂$|餐厅$|饭店$|"
    r"超市$|单位|办公室|"
    r"新|大厂|很|自己|朋友|某|创业|体制|本地|同|远程|线上|晚上|白天|周末|夜里)|(?:行业|领域|"
    r"部门?|市|省|县|区|"
    r"家|里|上|下|时|这里|那里|方面)$"
)


def _employer(text: str) -> str | None:
    name = _bare(text)
    if not 2 <= len(name) <= 14 or name in _CITIES or _NO_EMPLOYER.search(name):
        return None
    if _PRONOUN.search(name) or _NOT_A_THING.search(name) or not _NAMELIKE.fullmatch(name):
        return None
    return name


_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈"
    "姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
_COMPOUND = "欧阳|司马|上官|诸葛|慕容|皇甫|令狐|司徒"
_FULL_NAME = re.compile(
    rf"(?:{_COMPOUND}|[{_SURNAMES}])[\u4e00-\u9fff]{{1,2}}|[小阿老][\u4e00-\u9fff]{{1,2}}|"
    r"[A-Z][A-Za-z'-]*(?: [A-Z][A-Za-z'-]*){0,2}"
)
_GIVEN_NAME = re.compile(rf"(?:{_FULL_NAME.pattern})|[\u4e00-\u9fff]{{2,3}}")
_NO_NAME = re.compile(
    r"[我你您他她它们了过着不没吗呢吧的是在去来到吃喝回起把给帮很太真好坏这那哪什么么]|"
    r"外卖|医生|救命|出租|快递|滴滴"
)


def _person(text: str, pattern: re.Pattern[str] = _GIVEN_NAME) -> str | None:
    name = text.strip().strip("。.")
    return name if pattern.fullmatch(name) and not _NO_NAME.search(name) else None


# --- when ----------------------------------------------------------------------------------------

_DIGITS = {c: n for n, c in enumerate("一二三四五六七八九十", start=1)} | {"两": 2, "半": 1}
_AGO = re.compile(
    r"(?P<n>\d{1,3}|[一二两三四五六七八九十])(?P<unit>年|个月|天|个?星期|周)(?:以?前|之前)"
)
_IN_YEAR = re.compile(r"(?P<year>(?:19|20)\d\d)年")
_NAMED_PAST = (
    ("昨天", 1, "day"),
    ("前天", 2, "day"),
    ("上个星期", 1, "week"),
    ("上周", 1, "week"),
    ("上个月", 1, "month"),
)


def when(text: str, now: datetime) -> datetime | None:
    """What the words say about the beginning; None when nothing, or when it is not in the past."""
    moment = None
    if match := _AGO.search(text):
        number = match["n"]
        count = int(number) if number.isdigit() else _DIGITS[number]
        unit = {"年": "year", "月": "month", "天": "day", "期": "week", "周": "week"}
        moment = slots.ago(now, count, unit[match["unit"][-1]])
    elif match := _IN_YEAR.search(text):
        moment = slots.start_of_year(int(match["year"]))
    elif "去年" in text or "前年" in text:
        moment = slots.start_of_year(now.year - (1 if "去年" in text else 2))
    else:
        for word, count, unit_ in _NAMED_PAST:
            if word in text:
                moment = slots.ago(now, count, unit_)
    return moment if moment is not None and moment < now else None


# --- the slots -----------------------------------------------------------------------------------


def _fill(
    predicate: str,
    phrase: Callable[[str], str | None],
    *,
    holds: bool = True,
) -> _Take:
    def take(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
        filled = phrase(match["what"])
        return [Found(predicate, filled, holds=holds)] if filled is not None else None

    return take


def _fill_each(predicate: str, *, holds: bool = True) -> _Take:
    def take(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
        things = _things(match["what"])
        return [Found(predicate, each, holds=holds) for each in things] if things else None

    return take


def _full_name(text: str) -> str | None:
    return _person(text, _FULL_NAME)


def _job(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
    """An employer, an occupation, or both: 我在腾讯做工程师."""
    found = []
    employer = _employer(match["what"])
    if employer is not None:
        found.append(Found("works_at", employer, since=clause.since))
    occupation = match.groupdict().get("as")
    if occupation and (kind := _occupation(occupation)):
        found.append(Found("works_as", kind))
    return found or None


_OCCUPATION = re.compile(
    r"[\u4e00-\u9fff]{0,8}(?:工程师|设计师|律师|医师|药剂师|会计师|建筑师|摄影师|厨师|教师|老师|"
    r"理发师|分析师|"
    r"架构师|程序员|服务员|售货员|飞行员|消防员|快递员|演员|公务员|研究员|教练员|护士|医生|牙医|"
    r"兽医|教授|记者|"
    r"编辑|作家|画家|翻译|司机|会计|警察|军人|农民|工人|导游|导演|教练|产品经理|项目经理|经理|"
    r"顾问|秘书|歌手|"
    r"音乐家|科学家|程序猿|码农|博主|店长|销售)"
)


def _occupation(text: str) -> str | None:
    kind = re.sub(r"^(?:一名|一个|一位|名|个|位|一)", "", _bare(text))
    return kind if _OCCUPATION.fullmatch(kind) else None


def _school(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
    found = [Found("studies_at", match["where"])]
    subject = _bare(re.sub(r"专业$", "", _bare(match["what"] or "")))
    if subject and _SUBJECT_WORD.fullmatch(subject) and subject not in _DEGREES:
        found.append(Found("studies", subject))
    return found


_SCHOOL = r"[\w·]{2,12}?(?:大学|学院|中学|高中)|清华|北大|复旦|浙大|交大|[A-Z]{2,6}"
_SUBJECT_WORD = re.compile(r"[\u4e00-\u9fffA-Za-z]{2,8}")
_DEGREES = frozenset(
    ["本科", "硕士", "博士", "研究生", "大一", "大二", "大三", "大四", "博士后", "书"]
)


def _subject_of_study(text: str) -> str | None:
    subject = _bare(re.sub(r"专业$", "", _bare(text)))
    if not _SUBJECT_WORD.fullmatch(subject) or subject in _DEGREES:
        return None
    return subject if not _NOT_A_THING.search(subject) and not _PRONOUN.search(subject) else None


def _avoid(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
    things = _things(match["what"])
    if things is None:
        return None
    if things == ["素"]:
        return [Found("diet", "素食", holds=False)]
    return [Found("avoids", thing) for thing in things]


def _eat_again(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
    things = _things(match["what"])
    if things is None:
        return None
    found = [Found("consumes", thing) for thing in things]
    if any(re.search(r"[肉鱼虾鸡鸭牛羊]", thing) for thing in things):
        found.append(Found("diet", "素食", holds=False))
    return found


def _vegetarian(*, holds: bool) -> _Take:
    return lambda clause, match: [Found("diet", "素食", holds=holds)]


_NUMERAL = {c: n for n, c in enumerate("一二三四五六七八九", start=1)} | {"十": 10}


def _number(text: str) -> int:
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    value = _NUMERAL.get(ones, 0)
    return value + (10 * _NUMERAL.get(tens, 1) if ten else 0)


def _birthday(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
    month, day = _number(match["month"]), _number(match["day"])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    when: dict[str, str | int] = {"month": month, "day": day}
    if match["year"]:
        when["year"] = int(match["year"])
    return [Found("birthday", match["what"], attributes=when)]


def _plan(*, holds: bool = True) -> _Take:
    def take(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
        plan = _bare(match["what"])
        if not 2 <= len(plan) <= 24 or re.search(r"[你您他她]|怎|这|那样", plan):
            return None
        return [Found("plans", plan, holds=holds)]

    return take


def _pet(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
    kind, called = match["kind"], match["name"]
    if not called:
        return [Found("has_pet", kind)] if match["many"] else None
    name = _person(called)
    if name is None:
        return None
    return [
        Found("has_pet", name, attributes={"kind": kind}),
        Found("is_a", kind, subject=name),
    ]


def _lives(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
    place = _place(match["what"])
    return [Found("lives_in", place, since=clause.since)] if place else None


def _left(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
    place = _place(match["what"] or match["where"])
    return [Found("lives_in", place, holds=False)] if place else None


def _favourite(clause: _Clause, match: re.Match[str]) -> list[Found] | None:
    thing = _thing(match["what"])
    if thing is None or _NOT_A_KIND.search(match["kind"]):
        return None
    return [Found("likes", thing, attributes={"favourite": match["kind"]})]


_NOT_A_KIND = re.compile(r"人$|事|时|地方|一|瞬间|部分")

_DEGREE = (
    r"(?:很|最|特别|非常|超级|超|比较|挺|蛮|十分|尤其|一直|真的|可|也|还|都|就|向来|从小就?|"
    r"越来越)*"
)
_NOW_NOT = r"(?:已经|现在|再也|从此|以后|再)*"
_PETS = (
    "猫咪|小猫|猫|狗狗|小狗|狗|兔子|仓鼠|鹦鹉|乌龟|金鱼|鱼|鸟|蜥蜴|龙猫|柯基|金毛|拉布拉多|哈士奇|柴犬|泰迪|"
    "英短|美短|布偶猫|橘猫|荷兰猪|刺猬|猫猫"
)
_MONTH = r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_DAY = r"(?P<day>[12]\d|3[01]|0?[1-9]|三十一?|二?十[一二三四五六七八九]?|[一二三四五六七八九])"
_DATE = rf"(?P<what>(?:(?P<year>(?:19|20)\d\d)年)?(?:农历|阴历|阳历)?{_MONTH}月{_DAY}[日号])"

_SLOTS: tuple[tuple[re.Pattern[str], _Take], ...] = tuple(
    (re.compile(pattern), take)
    for pattern, take in (
        # name, birthday
        (r"(?:名字)?(?:叫做?|名叫|是叫)(?P<what>.{1,20})", _fill("name", _full_name)),
        (r"姓(?P<x>[\u4e00-\u9fff])，?叫(?P<what>.{1,6})", _fill("name", _full_name)),
        (rf"生日(?:是|在){_DATE}[了哦啊呀]?", _birthday),
        (rf"(?:是|出生于|生于|出生在){_DATE}(?:出生|生)?(?:的|人)?", _birthday),
        # home
        (r"(?:家)?(?:住在|住|定居在|居住在|定居)(?P<what>.{2,20})", _lives),
        (
            rf"{_NOW_NOT}不(?:再)?(?:住在?(?P<what>.{{2,14}}?)|在(?P<where>.{{2,14}}?)(?:住|"
            rf"生活))了?",
            _left,
        ),
        (
            r"(?:以前|之前|曾经|原来|过去)(?:一直)?(?:住在|住)(?P<what>.{2,14}?)",
            _fill("lives_in", _place, holds=False),
        ),
        (
            r"(?:从.{1,10})?(?:搬家?|搬)(?:到|去|来|回)(?:了)?(?P<what>.{2,14}?)(?:住|生活|来|"
            r"去)?了?",
            _lives,
        ),
        (r"(?:是|来自|老家(?:是|在)?)(?P<what>[^是]{2,8}?)(?:人|的)?", lambda c, m: _origin(m)),
        (r"在(?P<what>.{2,14}?)(?:定居|居住|生活)(?:了.{0,6})?", _lives),
        # work
        (
            r"(?:已经)?(?:不(?:再)?在|没在)(?P<what>.{2,14}?)(?:工作|上班|干|任职)了?",
            _fill("works_at", _employer, holds=False),
        ),
        (
            r"(?:已经)?从(?P<what>.{2,14}?)(?:离职|辞职|跳槽|退休)(?:出来)?了?",
            _fill("works_at", _employer, holds=False),
        ),
        (
            r"(?:以前|之前|曾经|原来|过去)在(?P<what>.{2,14}?)(?:工作|上班|任职)过?",
            _fill("works_at", _employer, holds=False),
        ),
        (
            r"在(?P<what>.{2,16}?)(?:工作|上班|任职|就职)了?(?:[一二两三四五六七八九十\d]+年了?)?",
            _job,
        ),
        (r"在(?P<what>.{2,14}?)(?:做|当|担任)(?P<as>.{2,12})", _job),
        (
            r"(?:入职|加入)了?(?P<what>.{2,14}?)(?:公司)?了?",
            _fill("works_at", _employer),
        ),
        (
            r"(?:是|当|做|担任)(?P<what>(?:一名|一个|一位|名|个|位)?.{2,10})",
            _fill("works_as", _occupation),
        ),
        # study
        (
            rf"在(?P<where>{_SCHOOL})(?:读|学习|学|念|上学|主修|攻读)(?P<what>.{{0,10}})",
            _school,
        ),
        (r"专业是(?P<what>.{2,8})", _fill("studies", _subject_of_study)),
        (
            r"(?:读|学|主修|攻读)(?:的是)?(?P<what>.{2,8})专业(?:的)?",
            _fill("studies", _subject_of_study),
        ),
        (
            r"(?:正在|在)(?:学习|学(?!校|生|院|期|历|会))(?P<what>.{2,8})",
            _fill("studies", _subject_of_study),
        ),
        (r"从(?P<what>.{2,12}(?:大学|学院))毕业了?", _fill("studies_at", _bare, holds=False)),
        # likes
        (
            rf"{_NOW_NOT}(?:已经)?不(?:再)?(?:喜欢|爱|爱吃|爱喝|爱看)(?P<what>.{{1,16}}?)了?",
            _fill_each("dislikes"),
        ),
        (
            rf"{_DEGREE}(?:不太|不怎么|不是很|一点也不|一点都不|并不|不)(?:喜欢|爱吃|爱喝|"
            rf"爱看)(?P<what>.{{1,16}})",
            _fill_each("dislikes"),
        ),
        (rf"{_DEGREE}(?:讨厌|反感|受不了|厌恶)(?P<what>.{{1,16}})", _fill_each("dislikes")),
        (
            rf"{_DEGREE}(?:喜欢上了?|爱上了?|迷上了?|喜欢|热爱|钟爱|酷爱|偏爱|爱吃|爱喝|爱看|"
            rf"爱听|爱(?!人|好|情|心|护))"
            r"(?P<what>.{1,16})",
            _fill_each("likes"),
        ),
        (r"最喜欢的(?P<kind>[^是]{1,6})是(?P<what>.{1,12})", _favourite),
        # diet
        (rf"{_NOW_NOT}不(?:再)?吃素了?", _vegetarian(holds=False)),
        (rf"{_NOW_NOT}不(?:再)?是素食(?:主义)?者了?", _vegetarian(holds=False)),
        (r"(?:是|开始|改)?(?:吃素|素食(?:主义)?者|纯素(?:主义者)?)的?了?", _vegetarian(holds=True)),
        (
            rf"{_NOW_NOT}(?:从来不|从不|不能|不再|不)(?:吃|喝|抽)(?P<what>[^了]{{1,12}})了?",
            _avoid,
        ),
        (
            r"(?:成功|已经|终于)?戒(?:掉)?了?(?P<what>酒|烟|咖啡|糖|奶茶|可乐|碳水)了?",
            _fill_each("avoids"),
        ),
        (
            r"(?:又|重新)+(?:开始|可以|能)?(?:吃|喝)(?P<what>.{1,10}?)了?",
            _eat_again,
        ),
        (r"(?:又|重新)?开始(?:重新)?(?:吃|喝)(?P<what>.{1,10}?)了?", _eat_again),
        (
            rf"{_NOW_NOT}(?:不再)对(?P<what>.{{1,12}}?)过敏了?",
            _fill_each("allergic_to", holds=False),
        ),
        (
            rf"{_NOW_NOT}对(?P<what>.{{1,12}}?)(?:已经)?不(?:再)?过敏了?",
            _fill_each("allergic_to", holds=False),
        ),
        (
            r"(?:从小)?对(?P<what>.{1,12}?)(?:严重|非常|很|有点|会|都|特别)*过敏",
            _fill_each("allergic_to"),
        ),
        # plans
        (
            r"(?:不打算|不准备|不计划|取消了?)(?:再)?(?P<what>.{2,24}?)了?",
            _plan(holds=False),
        ),
        (r"(?:打算|计划|准备|决定)(?:着)?(?P<what>.{2,24})", _plan()),
        # pets
        (
            rf"(?:家)?(?:养了?|有|领养了|收养了|买了)(?P<many>[一两三四五\d]?[只条个头])?"
            rf"(?P<kind>(?:小)?(?:{_PETS}))"
            r"(?:[ ,，]?(?:名字)?(?:是|叫做?|名叫|取名)(?P<name>.{1,6}))?",
            _pet,
        ),
    )
)


def _origin(match: re.Match[str]) -> list[Found] | None:
    whole = match.group()
    place = _bare(match["what"])
    is_from = whole.endswith("人") or whole.startswith(("来自", "老家"))
    if not is_from or place not in _CITIES:
        return None
    return [Found("comes_from", place)]


# --- relatives and pets by name ------------------------------------------------------------------

KIN = {
    "妹妹": "sister",
    "姐姐": "sister",
    "哥哥": "brother",
    "弟弟": "brother",
    "妈妈": "mother",
    "母亲": "mother",
    "爸爸": "father",
    "父亲": "father",
    "老婆": "wife",
    "妻子": "wife",
    "太太": "wife",
    "老公": "husband",
    "丈夫": "husband",
    "先生": "husband",
    "女朋友": "girlfriend",
    "男朋友": "boyfriend",
    "女儿": "daughter",
    "儿子": "son",
    "爷爷": "grandfather",
    "奶奶": "grandmother",
    "外公": "grandfather",
    "外婆": "grandmother",
    "表哥": "cousin",
    "表姐": "cousin",
    "表弟": "cousin",
    "表妹": "cousin",
    "堂哥": "cousin",
    "堂弟": "cousin",
    "侄子": "nephew",
    "侄女": "niece",
    "外甥": "nephew",
    "外甥女": "niece",
}
_KIN_WORD = "|".join(sorted(KIN, key=len, reverse=True))
_CALLED = re.compile(
    rf"我(?:的|家)?(?:有)?(?:一?个)?(?:大|小|二|亲)?(?P<kin>{_KIN_WORD})(?:的名字)?(?:叫做?|名叫|"
    rf"是叫)(?P<name>.{{1,12}})"
)
_DOES = re.compile(
    rf"我(?:的|家)?(?:大|小|二)?(?P<kin>{_KIN_WORD})"
    rf"(?P<name>[小阿][\u4e00-\u9fff]|[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}|[A-Z][a-z]+)"
    r"(?P<rest>(?:现在|目前|也|刚|已经|上个月|去年)*(?:住|在|搬|喜欢|讨厌|不|对|是|吃素|养).+)"
)
_CALLED_NEXT = re.compile(rf"({_PETS}|{_KIN_WORD})[，,](?=(?:名字)?(?:叫|名叫))")
"""'一只猫，叫咪咪' is one clause."""
_PET_CALLED = re.compile(
    rf"我(?:们)?(?:家)?的?(?P<kind>(?:小)?(?:{_PETS}))(?:的名字)?(?:叫做?|名叫|"
    rf"是叫)(?P<name>.{{1,6}})"
)


def _relative(clause: _Clause) -> list[Found] | None:
    """'我妹妹叫小红', '我妹妹小红住在罗马', '我家的猫叫咪咪'."""
    called = _CALLED.fullmatch(clause.text)
    if called is not None:
        name = _person(called["name"])
        return [Found(KIN[called["kin"]], name)] if name else None
    pet = _PET_CALLED.fullmatch(clause.text)
    if pet is not None:
        name = _person(pet["name"])
        if name is None:
            return None
        return [
            Found("has_pet", name, attributes={"kind": pet["kind"]}),
            Found("is_a", pet["kind"], subject=name),
        ]
    does = _DOES.fullmatch(clause.text)
    if does is None:
        return None
    name = does["name"]
    rest = _ADVERBS.sub("", does["rest"])
    told = _read_clause(_Clause(rest, clause.whole, clause.now)) or []
    about = [
        Found(each.predicate, each.object, subject=name, holds=each.holds, since=each.since)
        for each in told
        if each.subject == SELF and each.predicate not in ("name", "plans", "has_pet")
    ]
    return [Found(KIN[does["kin"]], name), *about] if about else None
