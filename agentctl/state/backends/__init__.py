"""Where shared state is kept: memory, files, SQLite, Redis. One rule of capacity and conditions for all."""
