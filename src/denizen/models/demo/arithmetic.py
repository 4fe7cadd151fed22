"""Calculates sums that people ask for. Exact, and bounded: what is too long or too large is not tried."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

_LONGEST = 60
_WORDS: Final = (
    ("divided by", "/"),
    ("multiplied by", "*"),
    ("plus", "+"),
    ("minus", "-"),
    ("times", "*"),
    ("×", "*"),
    ("·", "*"),
    ("÷", "/"),
    ("−", "-"),
)
_SUM = re.compile(r"[\d\s.+\-*/()]*\d[\d\s.+\-*/()]*")
_LETTER_X = re.compile(r"(?<=[\d)])\s*x\s*(?=[\d(])")
_OPERATIONS: Final[dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


def sum_in(text: str) -> str | None:
    """Returns the sum in `text`, in signs; None if it is not one."""
    signs = text.lower()
    for word, sign in _WORDS:
        signs = signs.replace(word, sign)
    signs = " ".join(_LETTER_X.sub(" * ", signs).rstrip(" =?!.").split())
    whole = len(signs) <= _LONGEST and signs.isascii() and _SUM.fullmatch(signs) is not None
    return signs if whole and re.search(r"\d\s*[+\-*/]", signs) else None


def result_of(signs: str) -> str:
    """Returns the result of the sum, or why it has none."""
    try:
        return _shown(_value(ast.parse(signs, mode="eval").body))
    except ZeroDivisionError:
        return "nothing: it divides by zero"
    except (SyntaxError, ValueError, KeyError):
        return "nothing I can work out"


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float()):
            return Fraction(ast.unparse(node))
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand)
        case ast.UnaryOp(op=ast.UAdd()):
            return _value(node.operand)
        case ast.BinOp():
            return _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
        case _:
            raise ValueError(ast.dump(node))


def _shown(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    rounded = f"{float(value):.6f}".rstrip("0").rstrip(".")
    return rounded if Fraction(rounded) == value else f"about {rounded}"
