package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// showStream serves the handler at a free port and prints the events that a client receives.
func showStream(ctx context.Context, out io.Writer, handler http.Handler) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer server.Close()
	go func() { _ = server.Serve(listener) }() // until Close
	return printEvents(ctx, out, "http://"+listener.Addr().String()+"/run?ask="+url.QueryEscape("Open the office and the safe."))
}

// printEvents prints one event a line, with its name and data.
func printEvents(ctx context.Context, out io.Writer, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	var name string
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "event":
			name = value
		case "data":
			fmt.Fprintf(out, "%-7s %s\n", name, value)
		}
	}
	return lines.Err()
}
