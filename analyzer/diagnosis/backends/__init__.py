"""What runs the language model: here in 4 bits, or at an endpoint that speaks OpenAI's protocol."""
