"""Our words and phrases of support talk, in English and German, beside VADER's list of English words.

A phrase is replaced by one word with a weight of its own: VADER weighs words, and does not see that "does not load" is
a complaint. Weights go from -4 to 4, as VADER's do; 0 takes away a weight that misleads in support talk ("yes", "help",
"save the file").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal

Language = Literal["en", "de"]

_NOTHING: Final = "phrasenothing"
_FAILS: Final = "phrasefails"
_ANNOYS: Final = "phraseannoys"
_WORKS: Final = "phraseworks"
_PHRASE_WEIGHTS: Final = {_FAILS: -2.3, _ANNOYS: -1.6, _WORKS: 2.2}


def _weights(text: str) -> dict[str, float]:
    """Reads lines of a weight and its words."""
    lines = (line.split() for line in text.strip().splitlines())
    return _PHRASE_WEIGHTS | {word: float(weight) for weight, *words in lines for word in words}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENGLISH: Final[Mapping[str, float]] = _weights("""
-3.0 unusable unacceptable furious outrageous
-2.3 broken buggy faulty defective damaged garbage unbelievable incompetent unresponsive overpriced wiped
-2.0 crash crashes crashed crashing freezes froze frozen hangs glitch glitchy laggy lags distorted corrupted
-2.0 unreliable impatient ignored ignores ignoring rude slow slower outage stuck wrong
-1.5 complain complaint unhappy cumbersome complicated tedious
-0.6 error errors problem problems issue issues bug bugs trouble
2.5 flawless flawlessly lifesaver seamless seamlessly
2.0 solved resolved sorted impressed reliable smooth smoothly instant instantly intuitive
1.6 fixed quick quickly faster easier recommend convenient responsive speedy
0 yes no ok okay sure please help support supported want wants like free save saved share shared create active accept
0 accepted agree agreed alert low block blocked critical security secure value important clear clears top hand kind
0 well number stop cancel cancelled canceled drop cut hide warning warn argument kill charge charged demand demands
0 certain interest interested ready care true play win opportunity matter natural join joined straight engage reach
0 consent solution solutions resolve limited request miss pay payment lost leave hello dear greetings pretty
""")

GERMAN: Final[Mapping[str, float]] = _weights("""
-3.0 katastrophe katastrophal furchtbar grauenhaft stinksauer wütend unverschämt unverschämtheit frechheit zumutung
-2.5 schrecklich miserabel unbrauchbar lächerlich sauer entsetzt empört scheiße mist unmöglich inakzeptabel
-2.2 enttäuscht enttäuschend enttäuschung schlecht schlimm kaputt defekt beschädigt fehlerhaft nervt nervig genervt
-2.2 ärgerlich ärgere ärgert verärgert frustriert frustrierend peinlich zeitverschwendung nutzlos sinnlos unfähig
-2.2 witz albtraum chaos unzufrieden hasse
-1.8 falsch langsam umständlich kompliziert abgestürzt absturz abstürze störung ignoriert vergeblich mangelhaft mühsam
-1.8 beschwerde beschweren traurig schade
-1.4 leider ewig ständig dauernd ausfall verspätet verspätung
-0.6 fehler problem schwierigkeiten
3.0 begeistert großartig fantastisch hervorragend ausgezeichnet wunderbar perfekt genial spitze exzellent
2.4 super toll klasse prima liebe lieben zufrieden glücklich bestens besten freue freut erfreut
2.0 danke dank gut schön froh dankbar freundlich hilfreich geholfen gelöst gefällt praktisch kompetent lob empfehlen
2.0 weiterempfehlen gerettet erleichtert klappt geklappt funktioniert gern nett angenehm zuverlässig einwandfrei
1.5 reibungslos besser schnell einfacher leichter erledigt
""")

_PARTS: Final = {
    # What the writer has not done yet is not a complaint: "I have not opened it".
    "<others>": r"(?<!\bi )(?<!\bwe )(?<!please )",
    "<cannot>": r"(?:can't|cannot|can not|cant|couldn't|could not|won't|wont|will not|unable to|not able to)",
    "<does not>": r"(?:(?:does|did|has|have|had)(?:n't| not)|doesnt|didnt|hasnt|never|no longer|(?<=\w )don't)",
    "<do>": r"(?:work|load|start|connect|sync|respond|help|fix|solve|arrive|come|came|show up|print|boot|last|happen"
    r"|deliver|repl(?:y|ied)|answer|open|log|do (?:what|anything|its))(?:e?[sd]|n)?",
    "<do at all>": r"(?:run|install|save|send|turn|play|update|download|register|reset|sign|reach|use|access|pay"
    r"|receive|get (?:in|into|past|it to)|find)",
    "<doing>": r"(?:work|load|start|connect|sync|respond|print|charg|deliver|reply|answer|open|boot)ing",
    "<th>": r"(?:third|fourth|fifth|sixth|tenth|hundredth|umpteenth|\d+(?:rd|th))",
    "<time>": r"(?:minutes|hours?|days?|weeks?|months?|ages|forever)",
    "<tut>": r"(?:funktionier\w*|geht|gehen|ging|klapp\w*|läuf\w*|lädt|start\w*|öffn\w*|druck\w*|verbind\w*|stimmt?"
    r"|passt|hilf\w*|kommt?|reagier\w*|antwort\w*|gefäll\w*|lös\w*|hält|speicher\w*)",
    "<getan>": r"(?:(?:an|zurück|vor|weiter)?(?:gekommen|geliefert|geholfen|gelöst|gemeldet|gerufen)|funktioniert"
    r"|geklappt|behoben|beantwortet|erstattet|angenommen|erhalten|reagiert|erreicht|bekommen|erschienen|akzeptiert"
    r"|möglich)",
    "<nicht>": r"(?:nicht|nie|niemals|kaum|gar nichts|nichts)",
}

_ENGLISH_PHRASES: Final = (
    (
        _NOTHING,
        r"""
        not (?:yet )?(?:tried|checked)
        if (?:it|that|this) (?:works|helps|worked)
        how (?:it|this|that) works?
        """,
    ),
    (
        _WORKS,
        r"""
        (?:no|without any|not a single) (?:complaints?|issues?|problems?|worries|trouble|errors?)(?: at all)?
        (?:never|not) been (?:this|so|better|easier|faster|happier)
        could(?:n't| not) be (?:better|happier)
        can(?:'t| not|not) complain
        not bad
        """,
    ),
    (
        _FAILS,
        r"""
        <cannot> (?:\w+ ){0,2}?(?:<do>|<do at all>)
        <others><does not> (?:\w+ ){0,2}?<do>(?: at all| any ?more)?
        (?:not|isn't|aren't|wasn't|stopped) (?:even )?<doing>
        (?:don't|do not|dont|didn't|did not|doesn't) (?:\w+ )?(?:like|love|enjoy|trust|recommend)
        nothing (?:\w+ )?<do>
        (?:nobody|no one|noone) \w+
        (?:isn't|is not|aren't|are not|wasn't|not) (?:\w+ )?(?:right|correct|acceptable|worth|good enough)
        not what (?:i|we) (?:asked|ordered|wanted|expected|paid)
        without (?:solving|fixing|answering|reading|notice)
        (?:logs?|logged|kicks?|kicked|locks?|locked|throws?) (?:me|us) out
        locked out
        <others>(?:wiped|deleted|erased|lost|ruined|destroyed|broke|messed up) (?:all )?(?:of )?(?:my|our|the)
        fed up|sick of|tired of|had enough|giv(?:e|ing) up|los(?:e|ing) patience|last straw|(?:i am|i'm) done with
        (?:a|such a|complete|total) joke
        money back|waste of|speak to (?:a|your) (?:manager|supervisor)
        charged (?:\w+ )?(?:twice|double|again)|double[- ]charged?
        losing (?:sales|money|customers|data|time)
        how (?:often|many times|much longer|hard can)|over and over
        keeps? (?:\w+ ){0,2}?(?:crash|fail|freez|disconnect|logg?|ask|break|los|dropp|repeat|send|show|say|hang)\w*ing
        (?:is|are|was|were|been|went|goes|all) (?:gone|down|offline|missing|dead)
        so (?:complicated|slow|bad)
        (?:great|wonderful|fantastic|nice|lovely),? (?:now|another)
        fail(?:s|ed|ing)? again
        same (?:\w+ )?(?:error|problem|bug|issue|message|thing)(?: again)?
        """,
    ),
    (
        _ANNOYS,
        r"""
        (?:for )?(?:the )?<th> (?:time|ticket|day|call|e-?mail|message|attempt|week)
        still (?:waiting|no|not)
        on hold
        waiting (?:\w+ ){0,4}?<time>
        for <time>
        supposed to (?:be|have been)|should have been
        the (?:\w+ )?bot again
        no (?:answer|reply|response)
        """,
    ),
    (
        _WORKS,
        r"""
        (?:works?|worked|working|runs?|running) (?:\w+ )?(?:now|again|fine|well|great|perfectly|smoothly|as expected)
        works? like a charm
        (?:now|finally) (?:it )?(?:works|runs|loads|connects)
        (?:that|this|it|which) worked
        (?:that|this|it|you|problem|issue|everything|all) (?:is |was |has been |got |have )?(?:now )?(?:solved|fixed)
        (?:that|this|it|you|problem|issue|everything|all) (?:is |was |has been |got |have )?(?:now )?(?:resolved|sorted)
        did the trick|made my day|life ?saver|saved (?:me|us)|extra mile|close the ticket|spot on|in no time
        (?:well|nicely) done|(?:good|great|nice) (?:job|work|one)|(?:big|great) help
        exactly (?:what|the)|just what
        (?:is|are) back(?: to normal)?
        can (?:log|sign|get) (?:\w+ )?(?:in|on) again
        does (?:exactly )?what it should
        (?:would|will) recommend
        (?:easier|faster|better|quicker) than
        much (?:better|faster|easier)
        that was (?:quick|fast|easy)
        within (?:minutes|seconds)
        (?:made|makes) (?:perfect |total )?sense
        (?:i|we|they|kids|really|also) (?:really |do |absolutely )?(?:like|love|enjoy)s?(?! to)
        """,
    ),
)

_GERMAN_PHRASES: Final = (
    (
        _NOTHING,
        r"""
        noch nicht (?:probiert|versucht|geprüft|geschaut)
        es geht um
        wie (?:funktioniert|geht|läuft)
        (?:guten|schönen) (?:tag|morgen|abend|gruß)
        """,
    ),
    (
        _WORKS,
        r"""
        (?:ohne|keine(?:rlei)?) (?:\w+ )?(?:probleme|fehler|schwierigkeiten|beschwerden|störung\w*)
        kein problem|kein grund zur \w+
        nicht schlecht|nichts auszusetzen|kann nicht klagen
        """,
    ),
    (
        _FAILS,
        r"""
        <tut> (?:\w+ ){0,4}?<nicht>(?: mehr)?
        <nicht> (?:\w+ ){0,2}?<getan>
        (?:niemand|keiner|kein mensch) \w+
        stürz\w* (?:\w+ ){0,4}?ab
        häng\w* sich (?:\w+ )?auf
        bricht (?:\w+ ){0,2}?ab
        schon wieder
        (?:immer noch|noch immer) (?:nicht|kein\w*|der\w*|die\w*|das\w*)
        (?:ist|sind|war|waren) (?:\w+ )?weg
        nase voll|mir reicht|reicht (?:es )?(?:mir|jetzt|langsam)|geld zurück
        so geht das nicht
        zweimal (?:\w+ )?(?:abgebucht|berechnet|bezahlt)
        warum dauert|wie oft (?:muss|soll)
        """,
    ),
    (
        _ANNOYS,
        r"""
        seit (?:\w+ )?(?:stunden|tagen|wochen|monaten|jahren|ewig\w*)
        (?:drei|vier|fünf|zehn|x)[- ]?mal|zum \w+ten mal
        wieder nur|ohne dass
        noch nie (?:\w+ )?(?:erlebt|gesehen)
        keine (?:antwort|hilfe|reaktion|rückmeldung|lösung)
        """,
    ),
    (
        _WORKS,
        r"""
        (?:endlich|jetzt|nun|wieder) (?:\w+ ){0,2}?(?:funktioniert|klappt|läuft|geht)
        (?:funktioniert|klappt|läuft|geht) (?:\w+ ){0,3}?(?:wieder|jetzt|nun|endlich|super|gut|bestens|einwandfrei)
        ging (?:ja |aber )?schnell
        alles (?:gut|läuft|bestens)
        genau das|tag gerettet|gut gemacht|gute arbeit|gerne wieder
        hat (?:\w+ )?(?:funktioniert|geklappt|geholfen)
        """,
    ),
)
_VADER_WORDS: Final = {
    "nicht": "not", "kein": "not", "keine": "not", "keinen": "not", "keiner": "not", "nie": "not", "niemals": "not",
    "ohne": "without", "aber": "but", "jedoch": "but", "sehr": "very", "wirklich": "really", "total": "totally",
    "völlig": "totally", "absolut": "absolutely", "richtig": "really", "viel": "very", "etwas": "slightly",
    "kaum": "hardly",
}  # fmt: skip
"""German words, and the English ones that VADER's rules know."""

_GERMAN_MARKS: Final = _words("""
ich nicht das der die und ist es wie ein eine einen mit zu auf habe hat haben bitte sie wir ihr mir mich mein meine sind
war im den dem von für was wo warum wieso wann welche welchen ja nein noch schon auch jetzt wieder bin kann können muss
soll gibt geht dass oder aber nur sehr alles bei nach seit um vom zum zur wird wurde danke niemand keiner kein keine
mehr immer wenn weil doch mal dann hier da er uns ihre diese dieser dieses ohne gar wer sich als
""")
_ENGLISH_MARKS: Final = _words("""
i the is it a an and to of my me you your we not do does did this that for on in with was are can what how why where
which when have has had be so no yes at from or but please thanks thank get need will would there if as by
""")
_UMLAUT: Final = re.compile("[äöüß]")
_ENDINGS: Final = ("", "e", "en", "er", "es", "em")
_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CLAUSE_END: Final = re.compile(r"[,;:.!?]+(?=\s)")
_APART: Final = " x x x"
"""Fills the three words that VADER looks back for a negation: one does not reach over the end of a clause."""


def _compiled(phrases: tuple[tuple[str, str], ...]) -> list[tuple[str, re.Pattern[str]]]:
    found: list[tuple[str, re.Pattern[str]]] = []
    for word, text in phrases:
        for name, part in _PARTS.items():
            text = text.replace(name, part)
        pattern = "|".join(line.strip() for line in text.strip().splitlines())
        found.append((word, re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)))
    return found


_PHRASES: Final = {"en": _compiled(_ENGLISH_PHRASES), "de": _compiled(_GERMAN_PHRASES)}


def language_of(text: str) -> Language:
    """Returns `de` if the text seems to be German; everything else is read as English."""
    words = [each.lower() for each in _WORD.findall(text)]
    german = sum(each in _GERMAN_MARKS or bool(_UMLAUT.search(each)) or german_stem(each) in GERMAN for each in words)
    return "de" if german > sum(each in _ENGLISH_MARKS for each in words) else "en"


@lru_cache(maxsize=4_096)
def german_stem(word: str) -> str:
    """Returns the word of our list that this is a form of ("tolle" of "toll"), otherwise the word itself."""
    found = word.lower()
    stems = (found.removesuffix(ending) for ending in _ENDINGS)
    return next((stem for stem in stems if stem in GERMAN), word)


def prepared(text: str, language: Language) -> str:
    """Returns the text as VADER reads it best: phrases as single words, negations within their clause."""
    for word, pattern in _PHRASES[language]:
        text = pattern.sub(word, text)
    if language == "de":
        text = _WORD.sub(lambda found: _VADER_WORDS.get(found[0].lower(), german_stem(found[0])), text)
    return _CLAUSE_END.sub(lambda found: found[0] + _APART, text)
