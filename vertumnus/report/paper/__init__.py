"""The paper's evaluation from our runs: a chapter for each table and figure, written as one illustrated report."""
