def greet(name):
    return "Good day, " + name


def main():
    print(greet("world"))


main()
