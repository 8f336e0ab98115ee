"""Expressions that are short, and grow without end when they are evaluated or compiled."""

DOUBLED = "[1]" + ".map(x,[x,x])" * 30
"""A list of 2^30 elements, which shares all of them until it is turned into JSON."""
FORMULA = "dyn([1]" + ".map(x,[x,x,x,x,x,x,x,x])" * 10 + ")"
REPLACED = "'a'" + ".replace('a','aaaaaaaaaa')" * 9
COMPARED = " == ".join(["[1]" + ".map(x,[x,x])" * 26] * 2)
"""What takes for ever without giving anything large."""

GROWING = {
    "doubled": DOUBLED,
    "formula": FORMULA,
    "replaced": REPLACED,
    "compared": COMPARED,
}
"""All that compile."""
