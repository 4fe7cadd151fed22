"""Email: a mailbox, read with IMAP; answers are sent with SMTP."""
