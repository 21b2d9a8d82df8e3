"""What runs leave behind: judging, tidy tables, folders, and finding them again."""
