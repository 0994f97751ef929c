"""Dynamic sizes: what is declared of them, what torch decides from them, and what is checked when the program runs."""
