package toolexec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/toolexec"
)

// Tags of other libraries are read, or are errors that name what to use: no rule is lost silently.
func TestTagsOfOtherLibraries(t *testing.T) {
	schema, err := toolexec.SchemaFor[struct {
		A string   `json:"a" description:"the first"`
		B *string  `json:"b,omitempty" jsonschema_description:"the second"`
		C []string `json:"c" desc:"the third, required"`
		D int      `json:"d" doc:"the fourth"`
		E struct {
			F string `json:"f" description:"below"`
		} `json:"e" description:"the fifth" jsonschema:"the fifth"`
		G string `json:"g" jsonschema:"a filter, e.g. name=value" yaml:"g" db:"g" bson:"g,omitempty"`
		H string `json:"h" jsonschema:"the key, required" validate:"-"`
	}]()
	require.NoError(t, err)
	for _, text := range []string{"the first", "the second", "the third, required", "the fourth", "the fifth", "below", "a filter, e.g. name=value", "the key, required"} {
		assert.Contains(t, schema.String(), `"description":"`+text+`"`)
	}

	for want, infer := range map[string]func() error{
		`A: tag validate:"required,min=1,max=5" is not read: a field is required unless its json tag has omitempty; use minimum, minLength or minItems; use maximum, maxLength or maxItems`: refuseCall[struct {
			A int `validate:"required,min=1,max=5"`
		}],
		`A: tag validate:"oneof=a b" is not read: use enum:"a,b"`: refuseCall[struct {
			A string `validate:"oneof=a b"`
		}],
		`A: tag validate:"gte=1,uuid4" is not read: use minimum:"1"; declare the schema with a JSONSchema method (SchemaSource)`: refuseCall[struct {
			A int `validate:"gte=1,uuid4"`
		}],
		`A: tag binding:"required" is not read: a field is required unless`: refuseCall[struct {
			A int `binding:"required"`
		}],
		`A: tag required:"true" is not read: a field is required unless`: refuseCall[struct {
			A int `required:"true"`
		}],
		`A: tag default:"5" is not read: say it in the description`: refuseCall[struct {
			A int `default:"5"`
		}],
		`A: tag format:"email" is not read: declare the schema`: refuseCall[struct {
			A string `format:"email"`
		}],
		`A: tag jsonschema:"description=the city,required,enum=a,enum=b" is not read: use jsonschema:"the description"; a field is required unless its json tag has omitempty; use enum:"a,b"`: refuseCall[struct {
			A string `jsonschema:"description=the city,required,enum=a,enum=b"`
		}],
		`A: tag jsonschema:"required,description=the city" is not read`: refuseCall[struct {
			A string `jsonschema:"required,description=the city"`
		}],
		`A: tag jsonschema:"required" is not read: a field is required unless`: refuseCall[struct {
			A string `jsonschema:"required"`
		}],
		`A: tag jsonschema:"title=City,minLength=2" is not read`: refuseCall[struct {
			A string `jsonschema:"title=City,minLength=2"`
		}],
		`A: it has several descriptions, "one" and "two": keep one`: refuseCall[struct {
			A string `jsonschema:"one" description:"two"`
		}],
		`B: tag validate:"required" is not read`: refuseCall[struct {
			A []struct {
				B string `validate:"required"`
			}
		}],
	} {
		t.Run(want, func(t *testing.T) { assert.ErrorContains(t, infer(), want) })
	}
}
