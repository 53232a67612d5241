"""Jobs of the backend: tracking the service's own, following others', applying outcomes."""
