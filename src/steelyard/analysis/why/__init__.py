"""Why a server was not placed: Nova's request, a minimal repair of it, and the filters."""
