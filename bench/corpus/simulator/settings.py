"""What the simulator has to know of a job besides its recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..job import Job


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Settings that a device would feel and a recording on the CPU doesn't show."""

    batch_size: int = 0
    """Batch of the recording, a prime; 0 if it is unknown, and nothing is multiplied."""
    batch_multiplier: int = 1
    """How many times the recorded batch a T4 works on; larger devices get more (`Hardware.usual_batch`). 1: exactly the
    recorded batch, on every device."""
    autocast: bool = True
    """Whether the job runs in half precision. Operators' types are recorded; of lists of tensors they are not."""
    tf32: bool = True
    """fp32 products and convolutions may use TF32 where the device has it."""
    cudnn_benchmark: bool = True
    """Whether cuDNN picks the fastest algorithm by trying."""
    ranks: int = 1
    """Over how many devices collectives go. Which there are, and when, the recording's acts say."""
    settings: dict[str, str] = field(default_factory=dict)
    """What a fault tells the simulator, by slug."""

    @staticmethod
    def of(job: Job) -> JobSettings:
        """The settings of a corpus job."""
        return JobSettings(
            batch_size=job.batch_size,
            batch_multiplier=job.batch_multiplier,
            autocast=job.autocast is not None,
            tf32=job.tf32,
            cudnn_benchmark=job.cudnn_benchmark,
            ranks=job.ranks,
            settings=dict(job.settings),
        )
