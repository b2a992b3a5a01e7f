"""What a model can call; each tool states its effects before it acts."""
