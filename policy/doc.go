// Package policy reads rules from files and makes hooks of them.
package policy
