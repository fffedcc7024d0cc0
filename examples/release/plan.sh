# Plans one more task in each iteration, and decides to stop after three.
echo "task $ITERATION" >> todo.txt
echo "planned task $ITERATION" >> "$PROGRESS"
if [ "$ITERATION" -ge 3 ]; then
	echo '{"decision": "stop", "reason": "three tasks are enough"}' > "$STATUS"
else
	echo '{"decision": "continue", "reason": "more is needed"}' > "$STATUS"
fi
