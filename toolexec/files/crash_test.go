package files_test

func crash(string) {}
