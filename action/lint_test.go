package action_test

import (
	"fmt"
	"testing"

	"github.com/samber/lo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/grapnel-go/grapnel/action"
)

func TestLintOfShells(t *testing.T) {
	for text, want := range map[string][]string{
		`echo "${ERROR}"`:                      nil,
		`echo ${ERROR}`:                        {"1:6 ${ERROR}"},
		`echo $ERROR`:                          {"1:6 $ERROR"},
		`./scripts/backup.sh ${PROGRESS}`:      {"1:21 ${PROGRESS}"},
		"true\n  echo a$ERROR":                 {"2:9 $ERROR"},
		`echo '${ERROR}'`:                      {"1:6 '${ERROR}'"},
		`echo '${NOT_OURS}'`:                   nil,
		`x=$ERROR`:                             nil,
		`x=$ERROR y=${STAGE} cmd`:              nil,
		`export X=$ERROR`:                      nil,
		`x=($ERROR)`:                           {"1:4 $ERROR"},
		`[[ $STAGE == plan ]]`:                 nil,
		`[[ $ITERATION -gt 5 ]]`:               nil,
		`[[ $ERROR -gt 5 ]]`:                   {"1:4 $ERROR"},
		`[ $STAGE = plan ]`:                    {"1:3 $STAGE"},
		`[ "$STAGE" = plan ]`:                  nil,
		`echo $((ITERATION + 1)) ${ITERATION}`: nil,
		`echo $(( $ERROR + 1 ))`:               {"1:10 $ERROR"},
		`case $STAGE in plan) echo $STAGE;; $ERROR) ;; esac`:    {"1:27 $STAGE"},
		`cat <<EOF` + "\n$ERROR\nEOF\n":                         nil,
		`cat <<< $ERROR`:                                        nil,
		`echo x > $PROGRESS`:                                    nil,
		`echo "$(cat $PROGRESS)"`:                               {"1:13 $PROGRESS"},
		`eval "$ERROR"`:                                         {`1:7 $ERROR`},
		`bash -c "echo $ERROR"`:                                 {"1:15 $ERROR"},
		`/bin/sh -ec "$ERROR"`:                                  {"1:14 $ERROR"},
		`bash -c 'echo "$1"' - "$ERROR"`:                        nil,
		`for f in $CHANGED_FILES; do rm "$f"; done`:             {"1:10 $CHANGED_FILES"},
		`for f in a b; do rm $f; done`:                          {"1:21 $f"},
		`echo $? $# ${#ERROR}`:                                  nil,
		`echo $@ "$@"`:                                          {"1:6 $@"},
		`echo "${ERROR:-$STAGE}"`:                               nil,
		`echo ${ERROR:-none}`:                                   {"1:6 ${ERROR:-none}"},
		`f() { echo $ERROR; }; (echo $STAGE) && { echo $CTX; }`: {"1:12 $ERROR", "1:29 $STAGE", "1:47 $CTX"},
		`if`: nil, // Validate says that it is none
	} {
		t.Run(text, func(t *testing.T) {
			got := lo.Map(action.Shell{Text: text}.Lint(), func(w action.Warning, _ int) string {
				require.Equal(t, "command", w.Field)
				require.NotEmpty(t, w.Message)
				return fmt.Sprintf("%d:%d %s", w.Line, w.Column, w.Text)
			})
			assert.ElementsMatch(t, want, got)
		})
	}
}
