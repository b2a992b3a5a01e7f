"""What is said to a server, through the official SDK. Nothing outside this package knows the SDK's types."""
