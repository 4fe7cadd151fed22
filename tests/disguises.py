"""A sentence in disguise: the same words to a reader, other characters to a program (disguises.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

_KEPT = json.loads((Path(__file__).parent / "disguises.json").read_text())
TEXT: Final[str] = _KEPT["text"]
DISGUISES: Final[dict[str, str]] = _KEPT["disguises"]
"""By what was done to the text."""
ORDINARY: Final = (
    "The plumber comes on Tuesday at nine, so please leave the side gate open for him.",
    "On Tuesday the gardener comes at ten, so please leave the key with the neighbours.",
    "Der Schlüssel für das alte Gewächshaus hängt neben der Tür, gleich hinter der Gießkanne.",
    "Die Gießkanne steht hinter der Tür, und der Schlüssel für das Auto hängt neben dem Spiegel.",
    "La clé de secours se trouve sous le pot bleu, derrière la porte de l’ancienne serre.",
    "Le pot bleu est cassé; la porte de la serre ferme mal depuis l’orage d’hier soir.",
    "Запасной ключ лежит под синим горшком за дверью старой теплицы, не забудь про это.",
    "Синий горшок разбился вчера, а дверь теплицы больше не закрывается как следует.",
    "Το εφεδρικό κλειδί είναι κάτω από τη μπλε γλάστρα πίσω από την πόρτα του θερμοκηπίου.",
    "Η μπλε γλάστρα έσπασε χθες και η πόρτα του θερμοκηπίου δεν κλείνει πια καλά.",
    "کلید یدکی زیر گلدان آبی پشت در گلخانه‌ی قدیمی است و فراموش نکن که بازش کنی.",
    "المفتاح الاحتياطي تحت الأصيص الأزرق خلف باب الدفيئة القديمة فلا تنس ذلك أبدا.",
    "अतिरिक्त चाबी पुराने ग्रीनहाउस के दरवाज़े के पीछे नीले गमले के नीचे रखी है।",
    "예비 열쇠는 오래된 온실 문 뒤의 파란 화분 아래에 있으니 잊지 말고 가져가세요.",
    "备用钥匙放在旧温室门后面的蓝色花盆下面,请不要忘记带走。",
    "予備の鍵は古い温室のドアの後ろの青い植木鉢の下にあります。",
    "Vitamins A, B, C, D and E: take one each morning, says Dr. J. R. R. Ito in section 4 b c.",
    "Zażółć gęślą jaźń, a potem zadzwoń do mnie w sprawie kluczy do szklarni i do garażu.",
)
"""Everyday sentences, some of them about the same things, of which none quotes another."""
