// Package approvals has the commands with which people answer what runs wait for, and make waivers.
package approvals
