# Settings of nbgrader for this course. `make course` writes this file once; change it as you like.
from pathlib import Path

c = get_config()  # noqa: F821
HERE = Path(__file__).parent.resolve()

c.CourseDirectory.root = str(HERE)
c.CourseDirectory.db_url = f"sqlite:///{HERE}/gradebook.db"
c.CourseDirectory.course_id = "featlearn"

# Seconds for one cell. Importing PyTorch on a busy machine can take half a minute, and a cell that
# is stopped gets no points; an answer that never ends is stopped by its check after ten seconds of
# computation.
c.Execute.timeout = 300
c.Execute.startup_timeout = 300
c.Execute.iopub_timeout = 300

# Whose a collected file is, by its name or its folder's: ada_01_kernels.ipynb, or as Moodle has it,
# "Ada Lovelace_17_assignsubmission_file/01_kernels.ipynb". A group (?P<timestamp>...) says when.
c.FileNameCollectorPlugin.named_regexp = (
    r".*/(?P<student_id>[^/_]+)_(?:.*[_/])?(?P<file_id>\d\d_[a-z_]+)\.ipynb"
)

# What is late is recorded, and the marks stay. "zero" takes them away.
c.LateSubmissionPlugin.penalty_method = "none"
