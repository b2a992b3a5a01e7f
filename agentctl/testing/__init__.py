"""The public test kit: strict fakes and a way to play a blueprint."""
