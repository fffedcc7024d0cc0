package sqlite

// Parts of statements. Those with parameters use ?1 for the current time, and ?2 for the latest start that a
// valid lease can have.
const (
	// live are the statuses of runs that have not ended.
	live = `('pending', 'ready', 'running', 'waiting')`

	// free is the condition that no process holds a run.
	free = `(owner = '' OR expires <= ?1 OR leased > ?2)`

	// noLease sets the columns of a run that no process holds.
	noLease = `owner = '', leased = NULL, expires = NULL`

	// becomesReady sets the columns of a run that becomes ready.
	becomesReady = noLease + `, status = 'ready', ready = ?1, updated = ?1, offer_seq = offer_seq + 1, offered = NULL`

	// satisfied is the condition that a waiting run need not wait any more.
	satisfied = `(NOT EXISTS (SELECT 1 FROM waits WHERE run = runs.n AND answered IS NULL)
		OR EXISTS (SELECT 1 FROM waits WHERE run = runs.n AND answered IS NOT NULL AND (ends OR any_wait))
		OR EXISTS (SELECT 1 FROM waits w JOIN runs c ON c.id = w.child
			WHERE w.run = runs.n AND w.answered IS NULL AND w.child <> '' AND c.status NOT IN ` + live + `))`

	// givesUp sets the columns of runs whose leases end, where the subquery continues tells which of
	// them are ready: all but those that are paused or wait for an answer.
	givesUp = noLease + `, updated = ?1, status = iif(ready_now, 'ready', 'waiting'), ready = iif(ready_now, ?1, NULL),
		offer_seq = offer_seq + ready_now, offered = iif(ready_now, NULL, offered)`
	continues = `SELECT n AS given_up, cancel_reason <> ''
		OR paused = 0 AND (status = 'running' OR ifnull(answer_by <= ?1, 0) OR ` + satisfied + `) AS ready_now FROM runs`
)

// reads and writes are all prepared statements.
var (
	reads = []string{
		selectRun, selectPosition, selectInput, selectSubmitted, selectResult, selectEntries, selectEvents, selectWaits, selectByToken, selectSpare,
		selectSpent, selectSignals, selectReadyQueues, selectQueues, selectOwed, selectUnpolled, selectServed, lookForWork, selectDeny, selectKeyID,
		selectWaivers, selectNewest, selectVersion, selectDocs,
	}
	writes = append([]string{
		insertRun, selectByKey, selectQueue, insertQueue, insertInput, insertLabel,
		selectHeld, updateAcquired, updateRenewed, delayRun, releaseRun, selectReady, updateClaimed,
		insertEvent, updateRun, updateStatus, endRun, isRepeated, upsertResult, removeWaits, wakeParents, answerAfter, wakeAnswered,
		selectNeeds, passRun, replaceInput, insertAfter, selectVersions, insertDocument, updateReplaced,
		selectKept, deleteWaits, insertWait, updateAnyWait, updateAnswerBy, updateToken, isOpen, insertToken, keepTokens, keepTokensOf,
		selectStored, updateAnswer, updatePartial, updateChecker, insertRecord, insertWaiver, updateWaiver, hasWaiver,
		updateCancel, wakeCancelled, updatePause, updateResume, countSignal, insertSignal,
		reconcileExpired, reconcileOverdue, reconcileDue, selectUnstarted, endUnstarted, selectLate,
		updateOffered, updatePolled, deleteRun, pruneRuns, pruneQueues, upsertDeny, upsertKeyID,
	}, insertEntries[:]...)
)
