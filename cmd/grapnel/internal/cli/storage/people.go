package storage

import (
	"os"

	"github.com/samber/lo"
	"github.com/spf13/cobra"

	"github.com/grapnel-go/grapnel/cmd/grapnel/internal/cli/console"
	"github.com/grapnel-go/grapnel/durable/approval"
)

// peopleVariable names the default of --people.
const peopleVariable = "GRAPNEL_PEOPLE"

// RegisterPeople adds the flag --people.
func RegisterPeople(c *cobra.Command, at *string) {
	c.Flags().StringVar(at, "people", os.Getenv(peopleVariable),
		"a `file` of people, with their roles and the hashes of their tokens (default: $"+peopleVariable+")")
}

// loadPeople reads a file of people; none if no file is named.
func loadPeople(path string) (*approval.People, error) {
	if path == "" {
		return &approval.People{}, nil
	}
	people, err := approval.LoadPeople(path)
	if err != nil {
		return nil, console.Usage(err)
	}
	return people, nil
}

// operator returns the user of the operating system, with the roles that a file of people lists for that name.
func operator(path string) (approval.Principal, error) {
	people, err := loadPeople(path)
	who := approval.Principal{Name: console.IdentityName()}
	if err == nil {
		if listed, ok := lo.Find(people.All(), func(p approval.Person) bool { return p.Name == who.Name }); ok {
			who.Roles = listed.Roles
		}
	}
	return who, err
}
