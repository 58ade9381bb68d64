"""What `make_near_words.py` is told of words, because no vector says it.

Of people and places these are examples: the script finds the others by their vectors. The rest are
complete for what they name.
"""

PEOPLE = """
    anna maria peter thomas susan linda karen lisa nancy sarah emily laura michelle kimberly
    donna carol amanda melissa stephanie rebecca cynthia kathleen amy angela helen brenda
    katherine samantha christine janet alexander robert michael david richard joseph charles
    daniel matthew anthony donald steven paul andrew joshua kenneth kevin brian george edward
    ronald timothy jason jeffrey ryan jacob gary nicholas eric jonathan larry justin scott
    brandon benjamin samuel gregory patrick raymond dennis jerry tyler aaron henry adam nathan
    douglas zachary kyle walter ethan jeremy keith roger terry sean gerald carl arthur lawrence
    dylan jesse jordan bryan bruce willie gabriel alan juan logan wayne ralph roy eugene randy
    vincent russell louis philip bobby johnny carlos pedro jose luis miguel sergio pablo diego
    fernando giovanni marco luca paolo hans klaus wolfgang pierre jacques francois ivan boris
    vladimir dmitri yuri ahmed mohammed ali hassan ibrahim kumar raj ravi chen wang zhang kim
    lee nguyen yuki hiroshi smith johnson williams jones miller davis garcia rodriguez wilson
    martinez anderson taylor hernandez moore martin jackson thompson lopez gonzalez harris
    robinson clark lewis walker allen wright torres nelson campbell roberts phillips evans
    turner diaz edwards collins murphy kelly sullivan kennedy napoleon shakespeare mozart
    beethoven einstein darwin hitler obama trump elvis zeus apollo sophie chloe zoe olivia emma
    mia isabella hannah lucas leo felix oscar max hugo bob rob nick jay sue jack ray drew dean
    pat gene eva charlotte victoria frances maxwell mabel ernie cassie tim timmy ada lucia
    marina kay mari alma margarita skye henrietta buffy kelvin missy jolene chuck vlad nelly
    nell dorothea sabrina celeste clare ivy hubert floyd levi dolly stu emmy libby sid ollie
    sofia sophia
""".split()  # noqa: SIM905
"""Names of people, and of nobody and nothing else as a rule."""

PLACES = """
    london paris berlin madrid rome vienna moscow tokyo beijing shanghai delhi mumbai sydney
    melbourne toronto montreal vancouver chicago boston dallas houston seattle denver atlanta
    miami detroit philadelphia texas california florida ohio michigan virginia georgia oregon
    utah nevada arizona colorado kansas iowa france germany spain italy portugal greece poland
    hungary austria belgium switzerland sweden norway denmark finland russia ukraine china japan
    korea india pakistan bangladesh thailand vietnam malaysia indonesia philippines australia
    canada mexico brazil argentina chile peru colombia cuba egypt morocco nigeria kenya ethiopia
    ghana uganda zimbabwe israel iran iraq syria turkey yorkshire kent essex sussex devon
    cornwall wales scotland ireland england manchester liverpool bristol leeds glasgow edinburgh
    dublin oxford cambridge munich hamburg cologne milan venice florence naples barcelona lisbon
    prague budapest warsaw athens istanbul cairo lagos nairobi johannesburg europe asia africa
    antarctica manhattan brooklyn hollywood
""".split()  # noqa: SIM905
"""Names of places."""

OTHER_WORDS = """
    house dog cat music teacher doctor hospital school water food bread cheese garden flower
    tree river mountain ocean beach road bridge car train plane bicycle ticket travel holiday
    hotel airport passport money bank price salary job office manager meeting project plan idea
    problem question answer reason result cause effect happy sad angry afraid tired hungry
    thirsty beautiful ugly strong weak fast slow early late big small old young new hot cold
    warm dry wet clean dirty rich poor cheap expensive easy difficult important buy sell give
    take bring carry throw catch push pull open close start stop walk run swim climb jump dance
    sing play paint draw write read speak listen hear watch look see think know remember forget
    learn teach study understand explain believe hope wish want need love hate enjoy prefer
    choose decide try help work cook eat drink sleep wake wash brush dress wear build break
    repair cut grow plant pick kill die live born marry divorce family mother father brother
    sister son daughter baby child friend neighbor guest husband wife uncle aunt kitchen
    bathroom bedroom window door wall floor roof table chair bed lamp mirror clock phone
    computer screen keyboard software program internet website email message letter book page
    story novel poem movie film actor stage theater museum art photo camera picture color red
    blue green yellow black white shape circle square line number word sentence language grammar
    science physics chemistry biology history geography math engine wheel fuel oil gas
    electricity energy power heat light sound noise voice song band guitar piano drum medicine
    pill disease fever cough pain blood heart brain lung stomach skin bone muscle hair eye ear
    nose mouth tooth hand foot leg arm shirt shoe hat coat trousers skirt ring necklace bag
    umbrella rain snow wind storm cloud sun moon star sky fire smoke earth stone sand metal gold
    silver iron wood paper glass plastic animal bird fish horse cow pig sheep chicken lion tiger
    elephant monkey bear wolf rabbit mouse insect apple banana orange lemon grape potato tomato
    onion carrot rice pasta soup salad sugar salt pepper coffee tea milk juice beer wine
    breakfast lunch dinner restaurant menu waiter recipe oven game ball team player coach score
    win lose race match tournament champion medal law court judge lawyer police crime prison
    soldier army war peace weapon battle enemy king queen president government election vote
    party tax church god prayer religion quickly slowly suddenly carefully usually rarely
    perhaps already simply strange natural political economic social national international
    annual monthly weekly digital mobile remote virtual quantum nuclear develop create improve
    increase reduce measure compare describe discuss argue agree refuse accept offer invite
    visit arrive leave return move stay wait follow lead join share save spend pay cost borrow
    lend owe grace joy faith rose lily daisy mark bill grant frank chase hunter mason baker
    cooking may march august ruby pearl olive ginger sandy rocky robin poet painter writer
    novelist journalist reporter editor professor scholar bassist guitarist singer drummer
    filmmaker director producer screenwriter minister senator governor mayor baron count duke
    duchess viscount knight noble saint priest bishop pope rabbi monk nun lieutenant captain
    sergeant general admiral doctorate doctoral graduate alumni biography memoir autobiography
    pseudonym uncredited himself herself anyone somebody someone entrepreneur founder inventor
    detective fisherman gardener architect historian philosopher composer conductor sculptor
    grandfather grandmother cousin niece nephew guru wizard prophet disciple angel demon devil
    ghost goddess lord lady sir madam prince princess emperor empress celebrity idol hero
    villain protagonist sitcom comedian actress starring album trilogy vocals lyrics novelty
    dissertation thesis elected appointed nominated nicknamed buried resigned campaign candidate
    gender boyfriend girlfriend dwarf elf vampire pirate cowboy englishman italian german french
    spanish russian chinese american greek roman jewish catholic neighborhood regional coastline
    jurisdiction club cafe resort palace cathedral lake island county district province region
    town village city municipal suburban downtown overseas abroad harbor mosque monastery
    tropical desert jungle forest valley canyon shipyard mall campus embassy republic kingdom
    empire colony territory border nation country continent rural urban parish tourist residence
    located situated stationed relocate settle migrate immigrant railway subway highway terminal
    station northern southern eastern western coastal inland volcano glacier peninsula bay gulf
    creek meadow prairie longitude latitude census population
""".split()  # noqa: SIM905
"""Words that are no names, among them those that are near names, or names too."""

NO_NAMES = """
    everyone candidates bush triple dawn survivor unanimous tallest weaver gorge curry jar
    winger mutation choreographer nominees maroon classmate reigns ape stormy formulas pronouns
    conqueror passions ivory scarlet interviewed presenter papa misty ant rusty playwright
    mathematician biographer saxophonist ebony magnate duets wince sheikh differentiation
    differentiate deacon elm famed fang hawker ace colt name names surname namesake author
    authors berry clay cast shook twin twins junior nobody whose whoever contestant nominations
    lineup roster presidents celebrities cousins statesman messiah protagonists biographies
    millionaire billionaire heiress contemporaries presided eldest pharaoh bled pry strode
    earnest dusty foster undertaker ceo rod ward superman outfielder undrafted goalscorer
    featherweight dj eponymous homme state states united location locations place places nearby
    countries cities towns headquarters headquartered destination destinations vicinity
    birthplace hometown borough whereabouts geographically governorate southeast northeast
    midwest southernmost upstate man men
""".split()  # noqa: SIM905
"""Words that their vectors would make names."""

COUNTED = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
    hundred hundreds thousand thousands million millions billion trillion first third fourth
    fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
    sixteenth seventeenth eighteenth nineteenth twentieth firstly secondly thirdly
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
    fridays saturdays sundays mon tue tues thu thur thurs fri
    january february april may june july august september october november december
    jan feb apr jun jul aug sep sept oct nov dec
""".split()  # noqa: SIM905
"""Numbers, weekdays and months: who asks for one means no other."""

OFFENDING = """
    negro pussy whore bitch bastard fuck fucking fucked homo dyke gypsy nazi nazis hitler terrorist
    terrorists terrorism isis islamist jihad dick cock tits rape raped porn penis slave sexy
""".split()  # noqa: SIM905
"""Words that nobody should be answered with who did not say them; they are found word for word."""

SHORT = "ad cd dj pc tv".split()  # noqa: SIM905
"""Words of two letters. The vocabulary's others are mostly pieces and abbreviations."""

APART = tuple(
    frozenset(line.split())
    for line in """
    red blue green yellow black white brown grey gray pink purple orange
    spring summer autumn fall winter
    north south east west northern southern eastern western
    left right
    mother father mom dad mum
    brother sister
    son daughter
    husband wife
    boyfriend girlfriend
    uncle aunt
    niece nephew
    grandmother grandfather grandma grandpa
    grandson granddaughter
    boy girl
    man woman
    king queen
    prince princess
    male female
    bride groom
    breakfast lunch dinner supper
    morning afternoon evening night
    yesterday today tomorrow
    day week month year decade century
    daily weekly monthly yearly
    hot cold
    warm cool cold
    big small
    large small little
    huge tiny
    long short
    tall short
    high low
    wide narrow
    thick thin
    heavy light
    old young new
    older younger
    early late
    earlier later
    fast slow
    quickly slowly
    good bad
    better worse
    best worst
    happy sad unhappy
    rich poor
    strong weak
    easy difficult hard
    cheap expensive
    clean dirty
    wet dry
    full empty
    open close closed
    light dark
    true false
    yes no
    love hate
    like dislike
    buy sell
    bought sold
    buyer seller
    borrow lend
    win lose
    winner loser
    victory defeat
    start stop end finish
    begin end finish
    remember forget
    arrive leave depart
    arrival departure
    come go
    enter exit
    push pull
    increase decrease reduce
    rise fall
    grow shrink
    gain loss lose
    accept refuse reject decline
    agree disagree
    allow forbid
    succeed fail
    success failure
    marry divorce
    marriage divorce
    born died
    birth death
    alive dead
    live die
    employed unemployed
    hire fire
    war peace
    friend enemy
    question answer
    question reply
    teach learn
    teacher student
    employer employee
    doctor patient
    first last
    before after
    above below
    inside outside
    indoor outdoor
    upstairs downstairs
    maximum minimum
    most least
    more less
    always never
    often rarely seldom
    public private
    positive negative
    possible impossible
    legal illegal
    safe dangerous
    healthy sick ill
    hot chilly
    asleep awake
    married single
    mine yours
    urban rural
    guilty innocent
    optimistic pessimistic
    cat dog
    coffee tea
    """.strip().splitlines()
)
"""Opposites, and words of which one excludes the others; of a line, none is near another."""
