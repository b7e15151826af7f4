"""The benchmark that `viewkeeper bench` runs: refreshes against recomputes, all in one run, as ratios."""
