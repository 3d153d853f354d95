"""S3 as a table needs it: single requests by boto3, uploads that are named later, reads of parts."""
