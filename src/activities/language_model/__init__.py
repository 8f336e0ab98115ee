"""Language models: asking an endpoint that speaks as OpenAI's does, under the rules of outbound."""
