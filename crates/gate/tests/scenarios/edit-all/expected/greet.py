def welcome(name):
    return "Hello " + name


def main():
    print(welcome("world"))


main()
