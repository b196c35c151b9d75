-- The tables of a store. Rows are added; what may change afterwards is said at each table, and triggers
-- refuse everything else, whoever writes.

-- A message or checkpoint. A parent has a smaller `seq`, so every walk towards the root ends.
-- `kind`: 1 user, 2 assistant, 3 tool, 4 checkpoint.
-- `place`: of a checkpoint, the first message that it keeps; null if its place is right behind it. `session`: of a checkpoint, whose commit wrote it.
-- `checkpoint`: the latest checkpoint at or above this node; follows from the parent.
-- `open_since`: the oldest node with a call that was open behind this node when it was written. Where it is
-- null no call is open behind this node, for good: no call is ever added before it. Where it is not, the
-- calls from there on say what is open now.
-- `usage`: whether the message says what its request cost, and on what it was built.
-- `estimate`: what the message, without preliminary results, or the summary costs in a request.
-- `body`: the content in its canonical JSON form.
CREATE TABLE node (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    parent INTEGER REFERENCES node (seq),
    kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 4),
    place INTEGER REFERENCES node (seq),
    session INTEGER REFERENCES session (seq),
    checkpoint INTEGER REFERENCES node (seq),
    open_since INTEGER REFERENCES node (seq),
    usage INTEGER NOT NULL DEFAULT 0 CHECK (usage IN (0, 1)),
    estimate INTEGER NOT NULL CHECK (estimate >= 0),
    body TEXT NOT NULL,
    CHECK (parent < seq),
    CHECK (kind = 4 OR place IS NULL),
    CHECK ((kind = 4) = (session IS NOT NULL)),
    CHECK (place < seq)
) STRICT;

-- A call that an assistant message makes. `position` counts the message's parts from 0. `approval`: the
-- message asks the user to allow it. `settled`: the node in which its final result stands, the calling
-- message itself or a tool message; null while it is open. Only the change from null to a node is allowed.
-- `late`: its result was put into the calling message after that was written.
-- One column is enough although nodes are shared: no operation lets two branches part while a call is open.
CREATE TABLE call (
    node INTEGER NOT NULL REFERENCES node (seq),
    position INTEGER NOT NULL,
    call TEXT NOT NULL,
    approval INTEGER NOT NULL CHECK (approval IN (0, 1)),
    settled INTEGER REFERENCES node (seq) CHECK (settled >= node),
    late INTEGER NOT NULL DEFAULT 0 CHECK (late IN (0, 1)),
    PRIMARY KEY (node, position),
    UNIQUE (node, call)
) STRICT, WITHOUT ROWID;

-- A session. `model` and `settings` are in their canonical JSON form. The revision stays or grows by one.
-- `gate`: the number of the checkpoint that a commit of this session is writing, or wrote last. Numbers are
-- never used again, so the gate is shut as soon as that checkpoint is there.
CREATE TABLE session (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    leaf INTEGER REFERENCES node (seq),
    revision INTEGER NOT NULL CHECK (revision >= 0),
    model TEXT NOT NULL,
    settings TEXT NOT NULL,
    gate INTEGER NOT NULL DEFAULT 0
) STRICT;

-- What a session carries besides its branch, such as a title.
CREATE TABLE metadata (
    session INTEGER NOT NULL REFERENCES session (seq),
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

-- `INSERT OR REPLACE` deletes without asking the triggers for deletion, so known keys are refused before.
-- A checkpoint needs the gate, which only a commit opens. One trigger for both: each costs every append.
CREATE TRIGGER node_insert BEFORE INSERT ON node
WHEN EXISTS (SELECT 1 FROM node WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM node WHERE seq = NEW.seq)
    OR (NEW.kind = 4 AND NEW.seq IS NOT (SELECT gate FROM session WHERE seq = NEW.session))
BEGIN
    SELECT RAISE(ABORT, 'a node is written once, and a checkpoint by a commit alone');
END;

CREATE TRIGGER node_delete BEFORE DELETE ON node
BEGIN
    SELECT RAISE(ABORT, 'a node is never deleted');
END;

-- A message with an open call may grow by results of its open calls: in the place of a preliminary result of
-- the same call, or behind its last part. (Nothing but a result has the field `preliminary`.) JSON texts of
-- call ids are compared, because SQLite ends an unquoted text at a zero character.
CREATE TRIGGER node_update BEFORE UPDATE ON node
WHEN NEW.seq IS NOT OLD.seq
    OR NEW.id IS NOT OLD.id
    OR NEW.parent IS NOT OLD.parent
    OR NEW.kind IS NOT OLD.kind
    OR NEW.place IS NOT OLD.place
    OR NEW.session IS NOT OLD.session
    OR NEW.checkpoint IS NOT OLD.checkpoint
    OR NEW.open_since IS NOT OLD.open_since
    OR NEW.usage IS NOT OLD.usage
    OR NOT EXISTS (SELECT 1 FROM call WHERE node = OLD.seq AND settled IS NULL)
    OR json_remove(NEW.body, '$.parts') IS NOT json_remove(OLD.body, '$.parts')
    OR json_array_length(NEW.body, '$.parts') < json_array_length(OLD.body, '$.parts')
    OR EXISTS (
        SELECT 1
        FROM json_each(NEW.body, '$.parts') AS now
        LEFT JOIN json_each(OLD.body, '$.parts') AS was ON was.key = now.key
        WHERE was.value IS NOT now.value
            AND NOT (
                now.value ->> '$.kind' = 'tool-result'
                AND (
                    was.value IS NULL
                    OR (was.value ->> '$.preliminary' IS 1 AND was.value -> '$.call' = now.value -> '$.call')
                )
                AND EXISTS (
                    SELECT 1
                    FROM call
                    JOIN json_each(OLD.body, '$.parts') AS made ON made.key = call.position
                    WHERE call.node = OLD.seq
                        AND call.settled IS NULL
                        AND made.value -> '$.call' = now.value -> '$.call'
                )
            )
    )
BEGIN
    SELECT RAISE(ABORT, 'a node changes only by results of its own open calls');
END;

-- A message's calls are written with it, before any other node.
CREATE TRIGGER call_insert BEFORE INSERT ON call
WHEN EXISTS (SELECT 1 FROM call WHERE node = NEW.node AND (position = NEW.position OR call = NEW.call))
    OR NEW.node IS NOT (SELECT max(seq) FROM node)
    OR (SELECT kind FROM node WHERE seq = NEW.node) IS NOT 2
BEGIN
    SELECT RAISE(ABORT, 'a call is written once, with its message');
END;

CREATE TRIGGER call_delete BEFORE DELETE ON call
BEGIN
    SELECT RAISE(ABORT, 'a call is never deleted');
END;

CREATE TRIGGER call_update BEFORE UPDATE ON call
WHEN NEW.node IS NOT OLD.node
    OR NEW.position IS NOT OLD.position
    OR NEW.call IS NOT OLD.call
    OR NEW.approval IS NOT OLD.approval
    OR OLD.settled IS NOT NULL
    OR NEW.settled IS NULL
    OR NEW.late IS NOT (NEW.settled = NEW.node)
    OR NOT (
        NEW.settled = OLD.node
        OR (SELECT kind FROM node WHERE seq = NEW.settled) IS 3
    )
BEGIN
    SELECT RAISE(ABORT, 'a call changes only by being settled, once');
END;

CREATE TRIGGER session_insert BEFORE INSERT ON session
WHEN NEW.revision <> 0 OR EXISTS (SELECT 1 FROM session WHERE id = NEW.id OR seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'a session begins once, at revision 0');
END;

CREATE TRIGGER session_delete BEFORE DELETE ON session
BEGIN
    SELECT RAISE(ABORT, 'a session is never deleted');
END;

CREATE TRIGGER session_update BEFORE UPDATE ON session
WHEN NEW.seq IS NOT OLD.seq
    OR NEW.id IS NOT OLD.id
    OR NEW.revision NOT IN (OLD.revision, OLD.revision + 1)
    OR (NEW.leaf IS NOT OLD.leaf AND NEW.revision = OLD.revision)
BEGIN
    SELECT RAISE(ABORT, 'a revision grows by one with each change of the branch');
END;
