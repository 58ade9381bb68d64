"""Word lists that the English reader goes by. All lower case."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in text.split())


PRONOUNS = _words(
    "i you he she it we they me him her us them my your his its our their mine yours hers ours "
    "theirs myself yourself himself herself itself ourselves themselves this that these those one "
    "ones everything anything something nothing everyone anyone someone everybody anybody somebody "
    "nobody who whom whose which what where when why how whatever whoever wherever whenever there "
    "here thing things stuff each other another"
)

BOUNDARY = _words(
    "and or but so because since although though while when whenever if unless until as than then "
    "with without for from by at on in of into about after before during like that which who "
    "especially except where even plus yet to over more most better too also not no based living"
)
"""Words at which a short noun phrase ends."""

NOT_OBJECTS = (
    PRONOUNS
    | BOUNDARY
    | _words(
        "a an the to be being been do doing does did is are was were am have has had having get "
        "getting go going went seeing hearing knowing talking working helping making looking "
        "taking giving trying finding using sharing meeting chatting coming thinking spending "
        "feeling saying telling all both some any every much many few several such quite very "
        "really just only never always now today tomorrow yesterday tonight again yes maybe "
        "please thanks hard well alone together enough less lots lot bit kind sort way fact idea "
        "part sound look smell feel think believe know would could should might may must can "
        "will shall two three four five six seven eight nine ten"
    )
)

NOT_FOODS = NOT_OBJECTS | _words(
    "out outside inside breakfast lunch dinner supper brunch meals meal food late early fast slow "
    "slowly quickly properly healthy healthily responsibly up down anywhere somewhere right left "
    "first last next late past or"
)

TRAILING = _words(
    "any now currently too again already anyway anymore these_days nowadays lol haha though "
    "actually honestly really truly today most best a_lot alot so_much very_much as_well "
    "of_course right_now any_more at_all at_the_moment you_know in_general all_the_time "
    "every_day everyday the_most to_be_honest tbh myself either sometimes forever ever"
)
"""Said after an object without being part of it."""

NOT_NAMES = _words(
    "i i'm the a an and but or so if then my your his her their our he she it we they you this "
    "that these those is was are were has had not no yes ok okay hi hello hey well also just who "
    "which when where what why how monday tuesday wednesday thursday friday saturday sunday "
    "january february march april june july august september october november december today "
    "tomorrow yesterday christmas easter mr mrs ms dr god lol omg btw sorry sad happy tired sick "
    "late busy here there back fine good great sure glad very really so too unknown secret "
    "important private none nothing nobody hard common long short always never still now only in "
    "on at for of to from with as by will can would could should may might must does did do said "
    "says thinks wants likes loves lives works"
)

NOT_PLACES = _words(
    "react vue angular python rust go java kotlin swift linux windows mac macos ubuntu debian "
    "android ios iphone aws azure gcp kubernetes docker slack teams notion postgres postgresql "
    "mysql mongodb redis neo4j chroma sqlite vim neovim emacs vscode git github gitlab jira "
    "typescript javascript chrome firefox gmail outlook zoom chatgpt claude gpt gemini marketing "
    "sales engineering management finance hr it product support operations plan phase step part "
    "version chapter page level room floor section english french german spanish italian chinese "
    "japanese monday tuesday wednesday thursday friday saturday sunday january february march "
    "april may june july august september october november december spring summer autumn fall "
    "winter dread fear hope peace constant general particular fact mind bed work school home"
)

NOT_EMPLOYERS = NOT_PLACES | _words(
    "night nights home weekends least most once myself free fun money peanuts hours days weeks "
    "months years minimum christmas easter christ"
)

NOT_SUBJECTS = NOT_OBJECTS | _words(
    "abroad online hard daily regularly remotely full-time part-time part full time there late "
    "early longer further material materials books notes today tonight weekly exam exams test "
    "tests finals midterms homework"
)

OCCUPATIONS = _words(
    "accountant actor actress analyst architect artist attorney author baker banker barber "
    "barista bartender bookkeeper bricklayer builder butcher carer caretaker carpenter cashier "
    "chef chemist cleaner coach composer consultant cook counselor counsellor dancer dentist "
    "designer developer dietitian director doctor driver economist editor electrician engineer "
    "entrepreneur farmer filmmaker firefighter fisherman florist gardener geologist guard "
    "hairdresser historian illustrator instructor interpreter janitor joiner journalist judge "
    "lawyer lecturer librarian lifeguard machinist manager mathematician mechanic midwife miner "
    "model musician nanny nurse nutritionist optician painter paralegal paramedic pastor "
    "pharmacist photographer physician physicist physiotherapist pianist pilot plumber poet "
    "policeman policewoman postman potter priest producer professor programmer psychiatrist "
    "psychologist psychotherapist radiologist realtor receptionist recruiter researcher roofer "
    "sailor salesman saleswoman scientist sculptor secretary singer soldier solicitor "
    "statistician stylist surgeon surveyor tailor teacher technician therapist toolmaker trainer "
    "translator tutor vet veterinarian violinist waiter waitress watchmaker welder writer "
    "zookeeper"
)

RELATIONS = {
    "sister": "sister",
    "brother": "brother",
    "mother": "mother",
    "mom": "mother",
    "mum": "mother",
    "father": "father",
    "dad": "father",
    "wife": "wife",
    "husband": "husband",
    "partner": "partner",
    "spouse": "partner",
    "girlfriend": "girlfriend",
    "boyfriend": "boyfriend",
    "fiance": "fiance",
    "fiancé": "fiance",
    "fiancee": "fiancee",
    "fiancée": "fiancee",
    "son": "son",
    "daughter": "daughter",
    "child": "child",
    "kid": "child",
    "grandmother": "grandmother",
    "grandma": "grandmother",
    "grandfather": "grandfather",
    "grandpa": "grandfather",
    "aunt": "aunt",
    "uncle": "uncle",
    "cousin": "cousin",
    "niece": "niece",
    "nephew": "nephew",
}
"""The word for a relative, and the predicate that it fills."""

PLURAL_RELATIONS = {
    "sisters": "sister",
    "brothers": "brother",
    "sons": "son",
    "daughters": "daughter",
    "kids": "child",
    "children": "child",
    "cousins": "cousin",
    "nieces": "niece",
    "nephews": "nephew",
    "aunts": "aunt",
    "uncles": "uncle",
}

PETS = _words(
    "dog puppy cat kitten rabbit bunny hamster guinea_pig parrot budgie bird goldfish turtle "
    "tortoise snake horse pony ferret gecko lizard canary cockatiel chinchilla axolotl"
)

DIETS = {
    "vegetarian": "vegetarian",
    "veggie": "vegetarian",
    "vegan": "vegan",
    "pescatarian": "pescatarian",
    "pescetarian": "pescatarian",
    "keto": "keto",
    "halal": "halal",
    "kosher": "kosher",
}

MEATS = _words(
    "meat chicken beef pork steak bacon ham lamb turkey duck sausage sausages burgers veal"
)
SEAFOOD = _words("fish seafood salmon tuna sushi shrimp prawns")
ANIMAL = _words("dairy milk cheese eggs egg butter yogurt yoghurt honey")

GIVEN_UP = _words(
    "meat pork beef chicken fish seafood alcohol coffee caffeine sugar smoking cigarettes "
    "drinking dairy gluten bread carbs soda coke cola chocolate wine beer whisky tea cheese milk "
    "eggs sweets candy fast_food red_meat wheat"
)
"""What "I gave up …" and "I quit …" say about what somebody eats, drinks or smokes."""

PASTIMES = _words(
    "swimming reading cooking baking hiking running dancing singing painting drawing travelling "
    "traveling gardening skiing cycling climbing camping fishing surfing writing knitting sewing "
    "jogging bowling sailing skating rowing boxing gaming photography kayaking snowboarding "
    "birdwatching meditating shopping biking bouldering crocheting"
)
VAGUE_PASTIMES = _words(
    "playing learning being watching listening waiting discovering exploring creating caring "
    "living "
    "building teaching moving planning winning losing hanging experimenting eating drinking "
    "walking "
    "escaping checking organizing organising collecting"
)
HEADS = _words(
    "movies music books games films food shows novels songs art sports stories wine cuisine dishes"
)
"""Nouns that the items of a list share: 'action and sci-fi movies'."""

GERUNDS = {
    "swim": "swimming",
    "read": "reading",
    "cook": "cooking",
    "bake": "baking",
    "hike": "hiking",
    "run": "running",
    "dance": "dancing",
    "sing": "singing",
    "paint": "painting",
    "draw": "drawing",
    "travel": "travelling",
    "garden": "gardening",
    "ski": "skiing",
    "cycle": "cycling",
    "climb": "climbing",
    "camp": "camping",
    "fish": "fishing",
    "surf": "surfing",
    "write": "writing",
    "knit": "knitting",
    "sew": "sewing",
    "jog": "jogging",
    "play": "playing",
}
"""Verbs of "I like to …" that name a pastime."""

OUTDOORS = _words(
    "outdoors beach sea ocean mountains countryside snow rain sun cold heat theatre theater opera "
    "cinema ballet desert forest woods"
)
"""What can be liked with 'the' before it."""

NOT_FAVOURITES = _words(
    "part parts thing things way one ones moment memory memories time place person people bit "
    "reason quote line scene"
)
