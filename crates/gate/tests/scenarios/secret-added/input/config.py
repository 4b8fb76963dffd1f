REGION = "eu-west-1"
