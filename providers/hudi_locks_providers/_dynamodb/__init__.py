"""What the DynamoDB lock providers are made of."""
