"""Words that fill open places in what callers say."""

NAMES = (
    "alice", "anna", "andrew", "ben", "charles", "chris", "daniel", "david", "emily", "emma", "eric", "frank",
    "george", "hannah", "helen", "henry", "jack", "james", "jane", "john", "julia", "kate", "laura", "linda",
    "lucy", "mark", "martin", "mary", "max", "michael", "nick", "olivia", "oscar", "paul", "peter", "rachel",
    "richard", "robert", "ryan", "sam", "sarah", "simon", "sophie", "stephen", "steve", "susan", "thomas", "tom",
    "victor", "william",
)

SPELLABLE = (
    "accommodate", "afternoon", "airplane", "animal", "answer", "apple", "banana", "beautiful", "because",
    "believe", "bicycle", "breakfast", "bridge", "brother", "business", "calendar", "camera", "castle",
    "cat", "chair", "cheese", "chicken", "chocolate", "church", "coffee", "colleague", "committee", "computer",
    "country", "daughter", "definitely", "different", "dinner", "doctor", "dog", "elephant", "embarrass",
    "environment", "family", "february", "flower", "friend", "garden", "government", "grammar", "guitar",
    "happy", "holiday", "hospital", "house", "hundred", "island", "january", "journey", "kitchen", "knife",
    "language", "laugh", "lemon", "library", "london", "machine", "market", "marriage", "mathematics", "medicine",
    "message", "money", "morning", "mother", "mountain", "music", "necessary", "neighbor", "number", "ocean",
    "orange", "paper", "parliament", "people", "pepper", "phone", "picture", "pineapple", "potato", "question",
    "queue", "rabbit", "rainbow", "receive", "restaurant", "rhythm", "river", "saturday", "school", "science",
    "secret", "separate", "sister", "squirrel", "station", "strawberry", "success", "summer", "sunday", "table",
    "telephone", "theater", "thousand", "tomato", "tomorrow", "traffic", "umbrella", "university", "vegetable",
    "village", "water", "weather", "wednesday", "window", "winter", "yellow", "yesterday", *NAMES,
)

TASKS = (
    "call (mother | mum | mom | father | dad | home | the doctor | the office | my wife | my husband | back)",
    "call <name>", "check (the oven | the door | the mail | my mail)", "drink (water | some water)",
    "take (a break | my medicine | my pills | out the trash)", "feed the (cat | dog)", "walk the dog",
    "close the (window | door)", "turn off (the oven | the light | the lights)", "water the (plants | flowers)",
    "buy (milk | bread | flowers)", "stand up", "stretch", "go home", "go to (bed | work | school)",
    "wake up", "leave", "make (tea | coffee)", "eat (lunch | dinner | something)", "breathe",
)
