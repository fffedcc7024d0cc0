package main

import "github.com/grapnel-go/grapnel/bench/worker"

func main() { worker.Main(contenders()...) }
