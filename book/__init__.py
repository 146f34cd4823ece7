"""What turns the notebooks into a book: execution, rules, scoreboard. Nothing else imports it."""
