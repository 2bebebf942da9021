"""The paper's evaluation from our runs: a chapter for each table and figure, one illustrated report."""
