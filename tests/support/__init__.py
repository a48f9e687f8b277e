"""What tests share: comparison of results, facts in messages, random programs, slow references."""
