# Does the first task of the list. The iteration may be repeated after a crash, so it must not do a task twice.
task=$(head -n 1 todo.txt)
grep -qx "$task" done.txt 2>/dev/null || echo "$task" >> done.txt
tail -n +2 todo.txt > todo.new && mv todo.new todo.txt
echo "did $task" | tee -a "$PROGRESS"
