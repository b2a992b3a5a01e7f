"""The words: frozen dataclasses without behaviour, and their JSON form."""
