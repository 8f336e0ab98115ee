"""Sessions of people in a browser, and the links that begin one."""
