"""What callers say, as templates: the speech grammar and the dialogue's parser are both made from here."""

from __future__ import annotations

from functools import cache

from duologue.engine.models.embedded.dialogue.numbers import RULES as NUMBER_RULES
from duologue.engine.models.embedded.dialogue.templates import Grammar
from duologue.engine.models.embedded.dialogue.vocabulary import NAMES, SPELLABLE, TASKS

LEAD = ["[okay | and | so | hey | hello | no | now] (please | (can | could | would | will) you [please])"
        " [tell me]", "i (want | would like) you to", "i'd like you to", "i want to know", "tell me",
        "okay", "and", "so", "hey", "hello", "no", "now", "um", "uh"]
TAIL = ["please", "now", "for me", "(thank you | thanks)"]

RULES: dict[str, list[str]] = NUMBER_RULES | {
    "name": [" | ".join(NAMES)],
    "spellable": [" | ".join(SPELLABLE)],
    "task": list(TASKS),
    "ask": ["what is", "what's", "how much is", "calculate", "compute", "tell me"],
    "operator": ["plus", "minus", "times", "multiplied by", "divided by"],
    "add": ["add"],
    "span": ["second", "seconds", "minute", "minutes", "hour", "hours"],
    "measure": [
        "(mile | miles)", "(kilometer | kilometers)", "(foot | feet)", "(meter | meters)", "(inch | inches)",
        "(centimeter | centimeters)", "(millimeter | millimeters)", "(yard | yards)", "(pound | pounds)",
        "(kilogram | kilograms | kilo | kilos)", "(gram | grams)", "(ounce | ounces)", "(liter | liters)",
        "(gallon | gallons)", "(pint | pints)", "(second | seconds)", "(minute | minutes)", "(hour | hours)",
        "(day | days)", "(week | weeks)", "(year | years)", "[degrees] (fahrenheit | celsius)"],
}

INTENTS: dict[str, list[str]] = {
    "greet": ["(hello | hi | hey) [there | again]", "good (morning | afternoon | evening)"],
    "farewell": ["(goodbye | bye | bye bye)", "good night", "see you [later]", "that is all", "that's all",
                 "have a nice day"],
    "thanks": ["(thank you | thanks) [very much | so much | a lot]", "many thanks"],
    "how_are_you": ["how are you [doing | today | doing today]", "how is it going", "how do you do",
                    "how do you feel", "are you okay"],
    "who_are_you": ["who are you", "what are you", "what is your name", "what's your name",
                    "who am i (talking | speaking) (to | with)", "are you a (robot | computer | person | human)",
                    "introduce yourself", "tell me about yourself"],
    "help": ["help [me]", "(i need | give me) [some] help", "what can you do",
             "what (can | could | should) i (ask | say | do)", "what can i ask you", "what do you know",
             "what are my options", "how does this work", "how can you help [me]"],
    "present": ["can you hear me", "are you (there | still there | listening)", "is anybody there"],
    "set_name": ["my name is <name:name>", "my name is <any:name>", "i am <name:name>", "i'm <name:name>",
                 "call me <name:name>"],
    "get_name": ["what is my name", "what's my name", "who am i", "do you (know | remember) my name"],
    "time": ["what time is it", "what is the time", "what's the time", "(tell me | give me) the time",
             "what the time is", "what time it is", "do you (know | have) (the time | what time it is)"],
    "date": ["what is (the date | today's date) [today]", "what's (the date | today's date) [today]",
             "(tell me | give me) (the date | today's date) [today]", "which date is it", "what date is it [today]",
             "what the date is"],
    "weekday": ["(what | which) day is it [today]", "(what | which) day is today", "(what | which) day it is",
                "what day of the week is it [today]", "what is today", "what's today"],
    "percent": ["[<ask>] <real:share> percent of <real:whole>"],
    "square": ["[<ask>] <number:number> squared", "[<ask>] the square of <number:number>"],
    "root": ["[<ask>] the square root of <number:number>"],
    "arithmetic": ["[<ask>] <real:left> <operator:operator> <real:right>",
                   "<add:operator> <number:left> (and | to | plus) <number:right>"],
    "further": ["[and | now] [that] <operator:operator> <real:right>"],
    "count": ["count [up] to <number:stop>", "count from <number:start> (to | up to | down to) <number:stop>",
              "count [up] to <number:stop> (by | in steps of) <number:step>",
              "count [up] to <number:stop> by <number:step>",
              "count from <number:start> to <number:stop> (by | in steps of) <number:step>"],
    "count_down": ["count (down | backwards | back) from <number:start> [to <number:stop>]"],
    "spell": ["[how do you] spell [the word] <spellable:word>", "[how do you] spell [the word] <any:word>",
              "how is <spellable:word> spelled"],
    "repeat": ["repeat after me <any:text>", "say after me <any:text>"],
    "dice": ["(roll | throw) (a | one | the) (die | dice)", "(roll | throw) [the] dice",
             "(roll | throw) <digit:number> dice"],
    "coin": ["(flip | toss | throw) a coin", "heads or tails"],
    "convert": ["convert <real:number> <measure:source> (to | into) <measure:target>",
                "<ask> <real:number> <measure:source> in <measure:target>",
                "how many <measure:target> (are | are there | is) (in | a) <real:number> <measure:source>",
                "how many <measure:target> (are | are there | is) in (a | an | one) <measure:source>"],
    "remind": ["remind me to (<task:task> | <any:task>) in <number:number> <span:span>",
               "remind me to (<task:task> | <any:task>) in (a | an | half a | half an) <span:span>",
               "remind me in <number:number> <span:span> to (<task:task> | <any:task>)",
               "in <number:number> <span:span> remind me to (<task:task> | <any:task>)",
               "remind me in <number:number> <span:span>",
               "set a (timer | reminder) for <number:number> <span:span>",
               "set a <number:number> <span:span> timer"],
    "reminders": ["what are my reminders", "(list | read) my reminders", "do i have [any] reminders",
                  "what (did i ask you | do you have) to remind me of"],
    "forget": ["(cancel | forget | delete | clear | remove) (my | the | all | all my) (reminder | reminders)",
               "(cancel | stop) the timer"],
    "story": ["tell me (a | another | one more) story", "(i want | i would like) to hear (a | another) story",
              "read me a story", "do you know (a | any) (story | stories)", "a story", "another story"],
    "joke": ["tell me (a | another) joke", "make me laugh", "another joke"],
    "stop": ["stop [it | that | talking | counting | there | now]", "wait [a moment | a minute | a second]",
             "hold on", "(be | please be) quiet", "quiet", "shut up", "enough", "that is enough",
             "that's enough", "never mind", "pause", "cancel", "hang on"],
    "go_on": ["go on", "continue", "(go on | continue) with the story", "carry on", "keep going",
              "continue (counting | the story)", "where were we", "resume"],
    "slower": ["[speak | talk | a bit | a little] slower", "(speak | talk | go) [more] slowly", "slow down",
               "[speak] more slowly", "you are too fast", "not so fast"],
    "faster": ["[speak | talk | a bit | a little] faster", "speed up", "you are too slow", "hurry up"],
    "normal_speed": ["(speak | talk) (normally | at normal speed)", "normal speed"],
    "again": ["say (that | it) again", "(say | repeat) (that | it)", "what did you say", "pardon [me]",
              "i beg your pardon", "once more", "one more time", "what was that", "come again",
              "repeat that", "i (did not | didn't) (hear | understand) (you | that)"],
    "last_said": ["what was the last thing you said", "what did you say last", "what was the last thing you told me"],
    "last_number": ["what was the last number [you said]", "what number did you say last",
                    "what is the last number you said", "which number was the last"],
    "last_heard": ["what did i say", "what did you hear", "what was the last thing i said",
                   "what did i just say", "what have i said"],
    "yes": ["yes [of course | i do | it is]", "yep", "yes i would", "that's right", "exactly", "correct"],
    "no": ["no [not really | i don't | it isn't | it is not]", "nope", "no way"],
    "fragment": ["<real>", "in <number> <span>", "[to] <measure>", "to <number>", "to <task> [in <number> <span>]",
                 "<task> in <number> <span>"],
    "backchannel": ["mm-hm", "uh-huh", "mm", "hm", "yeah [yeah]", "yep", "okay", "ok", "right", "alright",
                    "all right", "i see", "sure", "oh", "ah", "aha", "uh", "um", "huh", "really", "wow", "cool",
                    "great", "nice", "good", "fine", "yes", "okay okay", "yes yes", "oh okay", "yeah okay",
                    "yeah right", "oh yeah", "interesting", "got it", "i understand"],
}
"""Every intent and its phrasings; "backchannel" is last so that it only takes what no other intent wants."""


@cache
def grammar() -> Grammar:
    """The dialogue's grammar."""
    return Grammar(RULES, INTENTS, LEAD, TAIL, bare=("fragment", "backchannel"))
