// Package run has the commands that run one agent in the foreground: run and chat.
package run
