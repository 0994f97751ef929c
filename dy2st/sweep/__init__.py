"""Many targets: processes that check them, answers that are kept, what a run is compared with."""
