"""`workspace doctor`: what an operator asks first, each with the way to mend it."""
