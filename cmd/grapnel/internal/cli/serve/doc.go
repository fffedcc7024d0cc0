// Package serve has the commands of a coordinator and its runners, and about its sessions and tokens.
package serve
