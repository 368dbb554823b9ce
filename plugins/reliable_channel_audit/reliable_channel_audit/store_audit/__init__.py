"""What an operator can know of a channel from a Store alone, without anybody's journal."""
