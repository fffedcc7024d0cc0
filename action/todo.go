package action

import (
	"errors"

	"github.com/samber/mo"
)

func (h HTTP) Action(Host) mo.Result[Action] { return mo.Err[Action](errors.New("not yet")) }
func (g Gate) Action(Host) mo.Result[Action] { return mo.Err[Action](errors.New("not yet")) }
func (h HTTP) Lint() []Warning               { return nil }
func (g Gate) Lint() []Warning               { return nil }
func (h HTTP) Validate() error               { return nil }
func (g Gate) Validate() error               { return nil }
